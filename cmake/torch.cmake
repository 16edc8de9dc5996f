# libtorch out of the torch wheel in the virtual environment: headers, libtorch_cpu and libc10, nothing else. Neither
# Python nor a CUDA toolkit takes part in the build; libtorch_cuda, where the wheel has it, is opened at run time.
file(GLOB MUSTER_TORCH_DIR "${MUSTER_VENV}/lib/python3*/site-packages/torch")
if(NOT EXISTS "${MUSTER_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no torch wheel in ${MUSTER_VENV}: run 'make setup', or configure with -DMUSTER_TORCH=OFF")
endif()

add_library(muster_libtorch INTERFACE)
target_include_directories(muster_libtorch SYSTEM INTERFACE
  "${MUSTER_TORCH_DIR}/include" "${MUSTER_TORCH_DIR}/include/torch/csrc/api/include")
target_compile_definitions(muster_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
# Some of Debian's packages ask for it; the precompiled header and its users must agree.
target_compile_options(muster_libtorch INTERFACE -pthread)
target_link_libraries(muster_libtorch INTERFACE
  "${MUSTER_TORCH_DIR}/lib/libtorch_cpu.so" "${MUSTER_TORCH_DIR}/lib/libc10.so")
# In the build tree CMake's RUNPATH leads to the wheel. An installed program finds copies in lib/muster instead, so that the
# clone and its virtual environment may go: of what it needs at run time, exactly the files that come out of the wheels.
target_link_options(muster_libtorch INTERFACE -Wl,--enable-new-dtags)
get_filename_component(MUSTER_SITE_PACKAGES "${MUSTER_TORCH_DIR}" REALPATH)
get_filename_component(MUSTER_SITE_PACKAGES "${MUSTER_SITE_PACKAGES}" DIRECTORY)

function(muster_install_torch)
  install(RUNTIME_DEPENDENCY_SET muster_torch_runtime
    POST_INCLUDE_REGEXES "^${MUSTER_SITE_PACKAGES}/" "^${MUSTER_VENV}/"
    POST_EXCLUDE_REGEXES ".*"
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster)
endfunction()

# One precompiled header for everything that links libtorch: torch's headers cost 4 to 40 s a file without it.
add_library(muster_torch_pch OBJECT "${CMAKE_SOURCE_DIR}/cmake/precompiled.cc")
target_link_libraries(muster_torch_pch PRIVATE muster_libtorch muster_warnings)
muster_precompile(muster_torch_pch torch_pch.h
  "${MUSTER_TORCH_DIR}/include" "${MUSTER_TORCH_DIR}/include/torch/csrc/api/include")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(muster_torch_pch PRIVATE -fpch-instantiate-templates)
endif()

function(muster_use_torch target)
  target_link_libraries(${target} PUBLIC muster_libtorch)
  target_precompile_headers(${target} REUSE_FROM muster_torch_pch)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    muster_compile_as_library(${target})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -fpch-instantiate-templates)
  endif()
endfunction()

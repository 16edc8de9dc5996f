# Headers that cost more than the code that includes them, precompiled: GoogleMock takes a compiler 2.7 s a file, CLI11 5.7 s, nlohmann's
# JSON 3.4 s, fmt and the standard library 1.5 s, torch 4 to 40 s. What a file uses it still includes.

# muster_precompile(TARGET HEADER [FOLDERS…]): cmake/HEADER for the library, and for others by REUSE_FROM; FOLDERS are those of its
# includes that no compiler knows by itself.
function(muster_precompile target header)
  target_precompile_headers(${target} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/${header}")
  muster_write_checksum(${target} "${CMAKE_SOURCE_DIR}/cmake/${header}" ${ARGN})
endfunction()

# A clang precompiled header holds the paths of its clone, so ccache would not find from a second clone what was compiled with it.
# ccache takes the checksum beside it instead: of everything that the header includes.
function(muster_write_checksum target header)
  if(NOT MUSTER_CCACHE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  set(includes "")
  foreach(folder ${ARGN})
    list(APPEND includes "-I${folder}")
  endforeach()
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -E -P ${includes} "${header}"
    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE code)
  if(code EQUAL 0)
    string(SHA256 checksum "${text}")
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum" "${checksum}\n")
  endif()
endfunction()

# What ccache needs to store what was compiled with a precompiled header.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  # CMake names the header a second time, by a path that ccache cannot make relative.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
else()
  add_compile_options(-fpch-preprocess)
endif()

# muster_use_headers(TARGET NAME [QUICK] [LIBS…]): cmake/NAME_pch.h, precompiled once for all who use it; LIBS are whose headers it
# holds. QUICK: it and the target are compiled quickly (sanitizers.cmake).
function(muster_use_headers target name)
  cmake_parse_arguments(arg "QUICK" "" "" ${ARGN})
  set(holder muster_${name}_pch)
  if(NOT TARGET ${holder})
    add_library(${holder} OBJECT "${CMAKE_SOURCE_DIR}/cmake/precompiled.cc")
    target_link_libraries(${holder} PRIVATE ${arg_UNPARSED_ARGUMENTS} fmt::fmt muster_warnings)
    target_compile_options(${holder} PRIVATE -pthread)
    if(arg_QUICK)
      muster_compile_quickly(${holder})
    endif()
    muster_precompile(${holder} ${name}_pch.h)
  endif()
  # A header that was precompiled with a library's definitions is for who has them too.
  target_link_libraries(${target} PUBLIC fmt::fmt)
  target_compile_options(${target} PRIVATE -pthread)
  target_precompile_headers(${target} REUSE_FROM ${holder})
  if(arg_QUICK)
    muster_compile_quickly(${target})
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    muster_compile_as_library(${target})
  endif()
endfunction()

# CMake compiles programs with -fPIE, and compilers refuse for them what was precompiled with -fPIC.
function(muster_compile_as_library target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

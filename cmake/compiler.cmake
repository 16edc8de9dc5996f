# The language, the warnings that hold for all of our code, and the linker.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Assertions are MUSTER_CHECK, which stays in every build; NDEBUG only silences other people's asserts.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

add_library(muster_warnings INTERFACE)
target_compile_options(muster_warnings INTERFACE
  -Werror -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast
  -Wcast-align -Wformat=2 -Wunused -Wimplicit-fallthrough -Wvla -Wswitch-enum
  # Designated initialisers that leave a member to its default are how we pass options.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(muster_warnings INTERFACE
    -Wthread-safety -Wconversion -Wno-sign-conversion -Wno-implicit-int-float-conversion
    -Wextra-semi -Wno-missing-designated-field-initializers)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 finds overruns in std::string and fmt that are none, each time in another place that was inlined; clang's
  # sanitizers look for the real ones.
  target_compile_options(muster_warnings INTERFACE -Wno-array-bounds -Wno-stringop-overflow)
endif()
target_include_directories(muster_warnings INTERFACE "${CMAKE_SOURCE_DIR}/src")
# The same bits for the same arithmetic on every machine: nothing is contracted into an FMA behind our back.
target_compile_options(muster_warnings INTERFACE -ffp-contract=off)

find_program(MUSTER_MOLD mold)
find_program(MUSTER_LLD NAMES ld.lld-19 ld.lld)
if(MUSTER_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(MUSTER_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options("--ld-path=${MUSTER_LLD}")
endif()
add_link_options(-Wl,-z,relro,-z,now)

# ccache where it is installed. Paths below the source folder are rewritten, so a second clone hits the same cache.
find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env
      "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "${MUSTER_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

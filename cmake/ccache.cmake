# ccache helps where it is installed and is never required. Paths are hashed as they are seen from the sources, so that
# another copy of the tree finds what this one compiled.
find_program(VOXGATE_CCACHE ccache)
if(VOXGATE_CCACHE)
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${VOXGATE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

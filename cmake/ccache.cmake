# ccache helps where it is installed and is never required.
find_program(VOXGATE_CCACHE ccache)
if(VOXGATE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${VOXGATE_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${VOXGATE_CCACHE}")
endif()

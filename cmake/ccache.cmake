# ccache helps where it is installed and is never required. Paths are hashed as they are seen from the sources, the
# compiler by its content, and the language of its messages not at all, so that another copy of the tree finds what this
# one compiled, in a container too.
find_program(VOXGATE_CCACHE ccache)
if(VOXGATE_CCACHE)
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_COMPILERCHECK=content CCACHE_SLOPPINESS=locale "${VOXGATE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
  # A clone and an installed package have what they compile in different folders, and one path to it through this link.
  if(NOT WIN32 AND WHISPER_SOURCE_DIR MATCHES "^(.+/node_modules)/nodejs-whisper/")
    set(packages "${CMAKE_MATCH_1}/")
    set(link "${CMAKE_BINARY_DIR}/node_modules")
    file(CREATE_LINK "${packages}" "${link}" SYMBOLIC)
    string(REPLACE "${packages}" "${link}/" WHISPER_SOURCE_DIR "${WHISPER_SOURCE_DIR}")
    string(REPLACE "${packages}" "${link}/" CMAKE_JS_INC "${CMAKE_JS_INC}")
  endif()
endif()

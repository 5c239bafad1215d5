# The addon is tested with glibc only. On musl (Alpine) it may work, and whoever compiles it there should know.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  include(CheckSymbolExists)
  check_symbol_exists(__GLIBC__ "features.h" VOXGATE_GLIBC)
  if(NOT VOXGATE_GLIBC)
    message(WARNING "This system has no glibc (Alpine has musl). voxgate is not tested with it; the Dockerfile builds "
                    "an image with glibc.")
  endif()
endif()

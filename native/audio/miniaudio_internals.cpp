// Compiles the decoders, once and without the warnings of this project. miniaudio finds Vorbis only if
// stb_vorbis is declared first. The code of stb_vorbis is a hardened copy: see cmake/stb-vorbis.cmake.
#define STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): the decoder is one file

#define MINIAUDIO_IMPLEMENTATION
#include "audio/miniaudio_config.h"

#include "audio/decoder_limits.h"

#undef STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): as above

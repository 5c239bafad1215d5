// The decoders, compiled once and without our warnings. miniaudio finds Vorbis only if stb_vorbis was
// declared first. Its code comes from a hardened copy: see cmake/stb-vorbis.cmake.
#define STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): the decoder is one file

#define MINIAUDIO_IMPLEMENTATION
#include "audio/miniaudio_config.h"

#include "audio/decoder_limits.h"

#undef STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): as above

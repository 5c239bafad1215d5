// The decoders, compiled once and without our warnings. miniaudio finds Vorbis only if stb_vorbis was
// declared first.
#define STB_VORBIS_HEADER_ONLY
#include <stb_vorbis.c>

#define MINIAUDIO_IMPLEMENTATION
#include "audio/miniaudio_config.h"

#undef STB_VORBIS_HEADER_ONLY
#include <stb_vorbis.c>

#pragma once

#include "audio/miniaudio_config.h"

#include <cstddef>
#include <span>

namespace voxgate {

inline constexpr size_t kMp3Channels = 2;

// Samples that were decoded, those of all channels side by side.
struct SampleBlock {
  size_t frames = 0; // samples of each channel; none at the end of the file
  int channels = 0;
  int rate = 0; // in Hz
};

// Reads on in an MP3 to the end of its frame at most. Each frame has channels and a rate of its own, which
// change where files were joined. miniaudio reads all frames as if they were like the first one.
SampleBlock read_mp3(ma_decoder& decoder, std::span<float> output);

} // namespace voxgate

#pragma once

#include "audio/miniaudio_config.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace voxgate {

inline constexpr size_t kMp3Channels = 2;

// Samples that were decoded, those of all channels side by side.
struct SampleBlock {
  size_t frames = 0; // samples of each channel; none at the end of the file
  int channels = 0;
  int rate = 0;      // in Hz
  uint64_t lost = 0; // samples of each channel that are missing before it, because the file is damaged there
};

// The bytes and the samples of the MP3 frames so far, of which the last ones count the most: some ten
// seconds.
struct Mp3Mean {
  double bytes = 0;
  double samples = 0;
};

// Reads on in an MP3 to the end of its frame at most. Each frame has channels and a rate of its own, which
// change where files were joined. miniaudio reads all frames as if they were like the first one. What lies
// between two frames and is no tag was frames of the size of those before, whose `mean` is kept.
SampleBlock read_mp3(ma_decoder& decoder, std::span<float> output, Mp3Mean& mean);

// The number of a FLAC frame and its samples; no samples before the first frame.
struct FlacFrame {
  uint64_t number = 0; // of the frame; of its first sample where the frames have different lengths
  uint32_t samples = 0;
};

// Reads on in a FLAC to the end of its frame at most. Damaged frames are left out, and the number of the next
// one tells how much is missing. `last` is the frame before.
SampleBlock read_flac(ma_decoder& decoder, std::span<float> output, FlacFrame& last);

// The samples of each channel that the header names, or what is left of them in an MP3; 0 for unknown.
uint64_t named_frames_flac(ma_decoder& decoder);
uint64_t unread_frames_mp3(ma_decoder& decoder);

} // namespace voxgate

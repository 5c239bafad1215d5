#pragma once

#include "audio/log_mel.h"

#include <span>
#include <vector>

namespace voxgate {

// The input of Whisper: the log mel spectrogram (audio/log_mel.h) of audio followed by silence.
//
//   samples  16 kHz mono, more than 200
//   filters  `mels` rows of 201 weights, one for each bin of the spectrum
//   out      `mels` rows of out.size() / mels frames; those past the audio hold silence
inline void whisper_log_mel(std::span<const float> samples, std::span<const float> filters, size_t mels,
                            std::span<float> out) {
  // Half a frame of the beginning mirrored before it, so that the first frame is centered on the first
  // sample.
  std::vector<float> centered(samples.rend() - LogMel::kFrame / 2 - 1, samples.rend() - 1);
  centered.insert(centered.end(), samples.begin(), samples.end());
  const size_t frames = out.size() / mels;
  LogMel(filters, mels)(centered, frames, out.data(), {.band_step = frames, .frame_step = 1}, Team(1));
}

} // namespace voxgate

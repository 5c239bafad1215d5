#pragma once

#include <span>

namespace voxgate {

// The input of Whisper: the log mel spectrogram (audio/log_mel.h) of audio followed by silence.
//
//   samples  16 kHz mono, more than 200
//   filters  `mels` rows of 201 weights, one for each bin of the spectrum
//   out      `mels` rows of out.size() / mels frames; those past the audio hold silence
void whisper_log_mel(std::span<const float> samples, std::span<const float> filters, size_t mels,
                     std::span<float> out);

} // namespace voxgate

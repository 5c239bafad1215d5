#pragma once

#include <span>

namespace voxgate {

// The input of Whisper: the logarithm of the mel spectrogram, 25 ms frames every 10 ms, as
// `log_mel_spectrogram` of https://github.com/openai/whisper/blob/main/whisper/audio.py computes it for audio
// followed by silence.
//
//   samples  16 kHz mono, more than 200
//   filters  `mels` rows of 201 weights, one for each bin of the spectrum
//   out      `mels` rows of out.size() / mels frames; those past the audio hold silence
void whisper_log_mel(std::span<const float> samples, std::span<const float> filters, size_t mels,
                     std::span<float> out);

} // namespace voxgate

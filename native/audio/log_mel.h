#pragma once

#include "layers/team.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// The log mel spectrogram of Whisper: frames of 25 ms every 10 ms of samples at 16 kHz, decades, of which the
// eight below the loudest are kept (`log_mel_spectrogram` of
// https://github.com/openai/whisper/blob/main/whisper/audio.py). The models that hear it differ in what is
// put before and behind the samples (whisper_mel.h, turn_mel.cpp).
//
// whisper.cpp has one too, which cannot be used: it is a static function that needs a state, pads by itself,
// and takes longer by a slow Fourier transform. The features of Kaldi (fbank.h) are others: pre-emphasis,
// frames of 512 without padding, mel bands by a formula, natural logarithms and no range.
class LogMel {
 public:
  static constexpr size_t kFrame = 400;
  static constexpr size_t kHop = 160;
  static constexpr size_t kBins = kFrame / 2 + 1;

  // `filters` is [bands][kBins].
  LogMel(std::span<const float> filters, size_t bands);

  // The distance in `out` from a band to the next, and from a frame to the next.
  struct Layout {
    size_t band_step;
    size_t frame_step;
  };

  // Writes `frames` frames. Frame i begins at padded[i * kHop]; behind the samples is silence.
  void operator()(std::span<const float> padded, size_t frames, float* out, const Layout& layout,
                  const Team& team) const;

 private:
  // A row of the filterbank is a triangle; the rest of it is zeros.
  struct Filter {
    size_t first_bin = 0;
    std::vector<float> weights;
  };

  // Returns the loudest value of frames that follow each other.
  float compute(std::span<const float> padded, size_t first, size_t end, float* out,
                const Layout& layout) const;

  std::vector<Filter> filters_;
  std::array<float, kFrame> window_{};
};

} // namespace voxgate

#pragma once

#include "audio/real_fft.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

// The features SenseVoice was trained on: Kaldi's log mel filterbank as FunASR computes it (25 ms frames
// every 10 ms, only whole frames, no dither), then neighboring frames stacked ("low frame rate"). Samples
// are at 16 kHz.

namespace voxgate {

class Fbank {
 public:
  static constexpr size_t kFrame = 400;
  static constexpr size_t kHop = 160;

  explicit Fbank(int mels);

  // Rows of `mels` values, one for each whole frame; at least kFrame samples.
  std::vector<float> operator()(std::span<const float> samples) const;

 private:
  static constexpr size_t kFft = 512;
  static constexpr size_t kBins = kFft / 2; // Kaldi leaves the Nyquist bin out

  struct Filter {
    size_t first_bin = 0;
    std::vector<float> weights;
  };

  void power_spectrum(std::span<const float> frame, RealFft& fft, std::array<float, kBins>& power) const;

  std::array<float, kFrame> window_{};
  std::vector<Filter> filters_;
};

// Row t of the result is rows t*stride - (stack-1)/2 ... of the input side by side, the edges repeated.
std::vector<float> stack_frames(std::span<const float> rows, int width, int stack, int stride);

} // namespace voxgate

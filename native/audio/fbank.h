#pragma once

#include "audio/real_fft.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

// Kaldi's log mel filterbank (25 ms frames every 10 ms, only whole frames, pre-emphasis 0.97, no dither).
// Samples are at 16 kHz.

namespace voxgate {

enum class FbankWindow { hamming, povey };

// What differs between the models that were trained on these features.
struct FbankRecipe {
  FbankWindow window;
  float scale; // of samples from -1 to 1; Kaldi's own are 16-bit integers
};

class Fbank {
 public:
  static constexpr size_t kFrame = 400;
  static constexpr size_t kHop = 160;

  Fbank(int mels, const FbankRecipe& recipe);

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

  float scale_;
  std::array<float, kFrame> window_{};
  std::vector<Filter> filters_;
};

} // namespace voxgate

#pragma once

#include "audio/mel_bank.h"

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
  // The samples of one of the frames that are transformed side by side.
  void prepare(std::span<const float> frame, size_t lane, std::span<RealFft::Values> windowed) const;

  float scale_;
  std::array<float, kFrame> window_{};
  MelBank bank_;
};

} // namespace voxgate

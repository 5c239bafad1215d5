#pragma once

#include "layers/team.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// The logarithmic mel spectrogram of Whisper, as WhisperFeatureExtractor of Hugging Face's transformers 4
// computes it with do_normalize: frames of 25 ms every 10 ms, of samples with a mean of 0 and a variance
// of 1. Samples are at 16 kHz.
class WhisperMel {
 public:
  static constexpr size_t kFrame = 400;
  static constexpr size_t kHop = 160;
  static constexpr size_t kBins = kFrame / 2 + 1;

  // `filters` is [bands][kBins].
  WhisperMel(std::vector<float> filters, size_t bands);

  // Writes rows of `bands` values, one for each kHop samples. There must be more than kFrame samples.
  void operator()(std::span<const float> samples, float* rows, const Team& team) const;

 private:
  struct Range {
    size_t first = 0;
    size_t end = 0;
  };

  void frames(std::span<const float> padded, size_t first, size_t count, float* rows) const;

  size_t bands_;
  std::vector<float> filters_;
  std::vector<Range> ranges_; // the bins of each band whose weights are not 0
  std::array<float, kFrame> window_{};
};

} // namespace voxgate

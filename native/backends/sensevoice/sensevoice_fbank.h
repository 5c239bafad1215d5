#pragma once

#include "audio/fbank.h"

#include <algorithm>

// The features SenseVoice was trained on: Kaldi's filterbank as FunASR computes it, then neighboring frames
// stacked ("low frame rate").

namespace voxgate {

inline constexpr FbankRecipe kSenseVoiceFbank{FbankWindow::hamming, 32768};

// Row t of the result is rows t*stride - (stack-1)/2 ... of the input side by side, the edges repeated.
inline std::vector<float> stack_frames(std::span<const float> rows, int width, int stack, int stride) {
  const int count = static_cast<int>(rows.size()) / width;
  const int stacked = (count + stride - 1) / stride;
  std::vector<float> result;
  result.reserve(static_cast<size_t>(stacked) * static_cast<size_t>(stack * width));
  for (int t = 0; t < stacked; ++t) {
    for (int j = 0; j < stack; ++j) {
      const int row = std::clamp(t * stride + j - (stack - 1) / 2, 0, count - 1);
      const auto values =
          rows.subspan(static_cast<size_t>(row) * static_cast<size_t>(width), static_cast<size_t>(width));
      result.insert(result.end(), values.begin(), values.end());
    }
  }
  return result;
}

} // namespace voxgate

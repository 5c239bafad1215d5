#include "backends/sensevoice/sensevoice_fbank.h"

#include <algorithm>

namespace voxgate {

std::vector<float> stack_frames(std::span<const float> rows, int width, int stack, int stride) {
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

#include "backends/whisper/whisper_window.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr int kDenseBehind = 75; // 1.5 s behind the audio; docs/accuracy.md compares others

} // namespace

WhisperWindow whisper_window(int audio, int positions, int whole) {
  const int dense = std::min(audio + kDenseBehind, positions);
  const int stride = dense < positions ? (whole - dense) / (positions - dense) : 1;
  return {.positions = positions, .dense = dense, .stride = stride};
}

std::vector<uint16_t> score_offsets(const WhisperWindow& window, WindowPart part, size_t keys) {
  std::vector<uint16_t> offsets(keys, ggml_fp32_to_fp16(-INFINITY));
  std::fill(offsets.begin() + part.begin, offsets.begin() + part.end, ggml_fp32_to_fp16(0));
  std::fill(offsets.begin() + window.dense, offsets.begin() + window.positions,
            ggml_fp32_to_fp16(std::log(static_cast<float>(window.stride))));
  return offsets;
}

} // namespace voxgate

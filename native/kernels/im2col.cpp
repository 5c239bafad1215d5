// Convolutions over time: im2col.h says what is laid out. In ggml the threads take turns at the channels, so
// that both write to each line of the cache, and every value is rounded by itself.
#include "im2col.h"

#include "kernel_calls.h"

#include <ggml-cpu.h>

#include <algorithm>

namespace voxgate {
namespace {

constexpr int64_t kTimes = 64; // of a channel that are laid out together
constexpr int64_t kMaxTaps = 16;
constexpr int64_t kMaxStride = 4;

} // namespace

bool im2col(const ggml_compute_params* params, ggml_tensor* dst) {
  const ggml_tensor* const source = dst->src[1];
  const auto option = [dst](int i) { return int64_t{ggml_get_op_params_i32(dst, i)}; };
  const int64_t stride = option(0), padding = option(2), dilation = option(4);
  const bool over_time = option(6) == 0;
  const int64_t taps = dst->src[0]->ne[0];
  if (!over_time || dilation != 1 || stride > kMaxStride || taps > kMaxTaps || padding >= taps ||
      source->ne[2] != 1 || source->type != GGML_TYPE_F32 || source->nb[0] != sizeof(float))
    return false;
  VOXGATE_COUNT_CALL(im2col);
  const int64_t length = source->ne[0], channels = source->ne[1], times = dst->ne[1];
  const int64_t row = channels * taps;
  auto* const out = static_cast<ggml_fp16_t*>(dst->data);
  ggml_fp16_t seen[kTimes * kMaxStride + kMaxTaps];
  for (int64_t begin = params->ith * kTimes; begin < times; begin += params->nth * kTimes) {
    const int64_t count = std::min(kTimes, times - begin);
    const int64_t first = begin * stride - padding;
    const int64_t end = first + (count - 1) * stride + taps;
    const int64_t from = std::clamp<int64_t>(first, 0, length), to = std::clamp<int64_t>(end, from, length);
    std::fill_n(seen, end - first, ggml_fp16_t{0});
    for (int64_t channel = 0; channel < channels; ++channel) {
      const auto* const values = reinterpret_cast<const float*>(static_cast<const char*>(source->data) +
                                                                static_cast<size_t>(channel) * source->nb[1]);
      ggml_cpu_fp32_to_fp16(values + from, seen + (from - first), to - from);
      ggml_fp16_t* place = out + begin * row + channel * taps;
      for (int64_t time = 0; time < count; ++time, place += row)
        for (int64_t tap = 0; tap < taps; ++tap)
          place[tap] = seen[time * stride + tap];
    }
  }
  return true;
}

} // namespace voxgate

// Norms and convolutions of SpeechOps: speech_ops.h says what is computed. Threads divide channels or
// positions, and each sum is made by one of them. All loops run along channels, which lie side by side, so
// that the compiler vectorizes them.
#include "speech_ops.h"

#include "kernel_calls.h"
#include "speech_kernels.h"

#include "../exponential.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

// A kernel as rows of channels; ggml has the taps of a channel side by side.
void turn_kernel(const ggml_tensor* kernel, int64_t taps, int64_t channels, const Part& part, float* to) {
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t c = part.begin; c < part.end; ++c)
      to[tap * channels + c] = floats(kernel)[c * taps + tap];
}

void add_product(float* __restrict out, const float* __restrict x, const float* __restrict factor,
                 int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] += x[i] * factor[i];
}

} // namespace

void speech_norm(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(speech_norm);
  const Rows x(dst->src[0]);
  const float* const weight = floats(dst->src[1]);
  const float* const bias = floats(dst->src[2]);
  const auto epsilon = __builtin_bit_cast(float, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(user)));
  const int64_t width = dst->ne[0];
  constexpr int64_t kLanes = 32;
  for (int64_t row = ith; row < x.count; row += nth) {
    const float* const from = x[row];
    float* __restrict const to = row_of(dst, row);
    // Sums in lanes, in an order that the compiler may not choose by itself.
    float lanes[kLanes] = {};
    const int64_t whole = width / kLanes * kLanes;
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += from[i + lane];
    double sum = 0;
    for (const float lane : lanes)
      sum += lane;
    for (int64_t i = whole; i < width; ++i)
      sum += from[i];
    const auto mean = static_cast<float>(sum / static_cast<double>(width));
    std::fill_n(lanes, kLanes, 0.0F);
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += (from[i + lane] - mean) * (from[i + lane] - mean);
    double squares = 0;
    for (const float lane : lanes)
      squares += lane;
    for (int64_t i = whole; i < width; ++i)
      squares += (from[i] - mean) * (from[i] - mean);
    const float scale = 1 / std::sqrt(static_cast<float>(squares / static_cast<double>(width)) + epsilon);
    for (int64_t i = 0; i < width; ++i)
      to[i] = (from[i] - mean) * scale * weight[i] + bias[i];
  }
}

void speech_convolution(ggml_tensor* dst, int ith, int nth, void*) {
  VOXGATE_COUNT_CALL(speech_convolution);
  const Rows x(dst->src[0]);
  const int64_t width = dst->ne[0];
  const int64_t taps = dst->src[1]->ne[0];
  const int64_t pad = taps / 2;
  const Part part(width, ith, nth);
  const int64_t count = part.end - part.begin;
  float* const gated = row_of(dst, x.count); // with rows of zeros before and behind
  float* const kernel = gated + (x.count + taps) * width;
  float* const factor = kernel + taps * width;
  float* const shift = factor + width;
  turn_kernel(dst->src[1], taps, width, part, kernel);
  for (int64_t c = part.begin; c < part.end; ++c) {
    factor[c] = floats(dst->src[4])[c] / std::sqrt(floats(dst->src[3])[c]);
    shift[c] = floats(dst->src[5])[c] - floats(dst->src[2])[c] * factor[c];
  }
  for (int64_t t = 0; t < x.count + taps - 1; ++t) {
    float* __restrict const to = gated + t * width;
    if (t < pad || t >= x.count + pad) {
      std::fill(to + part.begin, to + part.end, 0.0F);
      continue;
    }
    const float* const from = x[t - pad];
    for (int64_t c = part.begin; c < part.end; ++c)
      to[c] = from[c] * sigmoid(from[width + c]);
  }
  for (int64_t t = 0; t < x.count; ++t) {
    float* __restrict const to = row_of(dst, t) + part.begin;
    std::fill_n(to, count, 0.0F);
    for (int64_t tap = 0; tap < taps; ++tap)
      add_product(to, gated + (t + tap) * width + part.begin, kernel + tap * width + part.begin, count);
    const float* const f = factor + part.begin;
    const float* const s = shift + part.begin;
    for (int64_t c = 0; c < count; ++c) {
      const float value = to[c] * f[c] + s[c];
      to[c] = value * sigmoid(value);
    }
  }
}

void speech_subsample(ggml_tensor* dst, int ith, int nth, void*) {
  VOXGATE_COUNT_CALL(speech_subsample);
  const Rows mel(dst->src[0]);
  const int64_t mels = dst->src[0]->ne[0];
  const int64_t channels = dst->ne[0];
  const int64_t frames = halved(mel.count), bands = halved(mels); // after the first convolution
  const int64_t times = halved(frames), frequencies = halved(bands);
  const int threads = std::min(nth, kSubsampleThreads);
  if (ith >= threads)
    return;
  float* const memory = row_of(dst, times * frequencies) + ith * (3 * bands + 18) * channels;
  float* const first = memory + 3 * bands * channels;
  float* const second = first + 9 * channels;
  const Part all(channels, 0, 1);
  turn_kernel(dst->src[1], 9, channels, all, first);
  turn_kernel(dst->src[3], 9, channels, all, second);

  // A row of the first convolution, with ReLU; three of them are kept.
  const auto row = [&](int64_t frame) { return memory + frame % 3 * bands * channels; };
  const auto compute = [&](int64_t frame) {
    for (int64_t band = 0; band < bands; ++band) {
      float* __restrict const to = row(frame) + band * channels;
      std::copy_n(floats(dst->src[2]), channels, to);
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t t = 2 * frame + tap / 3 - 1, f = 2 * band + tap % 3 - 1;
        if (t < 0 || t >= mel.count || f < 0 || f >= mels)
          continue;
        const float value = mel[t][f];
        const float* __restrict const kernel = first + tap * channels;
        for (int64_t c = 0; c < channels; ++c)
          to[c] += value * kernel[c];
      }
      for (int64_t c = 0; c < channels; ++c)
        to[c] = to[c] > 0 ? to[c] : 0;
    }
  };
  const int64_t begin = times * ith / threads, end = times * (ith + 1) / threads;
  int64_t computed = std::max<int64_t>(0, 2 * begin - 1);
  for (int64_t time = begin; time < end; ++time) {
    for (; computed <= std::min(frames - 1, 2 * time + 1); ++computed)
      compute(computed);
    for (int64_t frequency = 0; frequency < frequencies; ++frequency) {
      float* const to = row_of(dst, time * frequencies + frequency);
      std::copy_n(floats(dst->src[4]), channels, to);
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t t = 2 * time + tap / 3 - 1, f = 2 * frequency + tap % 3 - 1;
        if (t >= 0 && t < frames && f >= 0 && f < bands)
          add_product(to, row(t) + f * channels, second + tap * channels, channels);
      }
    }
  }
}

void speech_subsample_again(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(speech_subsample_again);
  const Rows x(dst->src[0]);
  const auto bands = static_cast<int64_t>(reinterpret_cast<uintptr_t>(user));
  const int64_t frames = x.count / bands;
  const int64_t channels = dst->ne[0];
  const int64_t times = halved(frames), frequencies = halved(bands);
  const Part part(channels, ith, nth);
  const int64_t count = part.end - part.begin;
  const float* const before = floats(dst->src[1]) + part.begin;
  float* const kernel = row_of(dst, times * frequencies);
  turn_kernel(dst->src[2], 9, channels, part, kernel);
  for (int64_t row = 0; row < times * frequencies; ++row) {
    float* __restrict const to = row_of(dst, row) + part.begin;
    std::copy_n(floats(dst->src[3]) + part.begin, count, to);
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t t = 2 * (row / frequencies) + tap / 3 - 1, f = 2 * (row % frequencies) + tap % 3 - 1;
      if (t < 0 || t >= frames || f < 0 || f >= bands)
        continue;
      const float* const from = x[t * bands + f] + part.begin;
      const float* const factor = kernel + tap * channels + part.begin;
      for (int64_t c = 0; c < count; ++c) {
        const float value = from[c] + before[c];
        to[c] += (value > 0 ? value : 0) * factor[c];
      }
    }
  }
}

void speech_finish(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(speech_finish);
  const auto steps = static_cast<int>(reinterpret_cast<uintptr_t>(user));
  const int64_t width = dst->ne[0];
  // ggml puts the tensor itself first.
  const float* const bias = (steps & kBias) != 0 ? floats(dst->src[1]) : nullptr;
  const ggml_tensor* const carried = (steps & kCarry) != 0 ? dst->src[bias != nullptr ? 2 : 1] : nullptr;
  for (int64_t row = ith; row < dst->ne[1]; row += nth) {
    float* __restrict const x = row_of(dst, row);
    if (bias != nullptr)
      for (int64_t i = 0; i < width; ++i)
        x[i] += bias[i];
    if ((steps & kRelu) != 0)
      for (int64_t i = 0; i < width; ++i)
        x[i] = x[i] > 0 ? x[i] : 0;
    if ((steps & kSilu) != 0)
      for (int64_t i = 0; i < width; ++i)
        x[i] *= sigmoid(x[i]);
    if ((steps & kHalf) != 0)
      for (int64_t i = 0; i < width; ++i)
        x[i] *= 0.5F;
    if (carried != nullptr) {
      const float* const more = row_of(carried, row);
      for (int64_t i = 0; i < width; ++i)
        x[i] += more[i];
    }
  }
}

void speech_memory(ggml_tensor* dst, int ith, int nth, void*) {
  VOXGATE_COUNT_CALL(speech_memory);
  const Rows v(dst->src[0]), x(dst->src[2]);
  const int64_t width = dst->ne[0];
  const int64_t taps = dst->src[1]->ne[0];
  const Part part(width, ith, nth);
  const int64_t count = part.end - part.begin;
  float* const kernel = row_of(dst, v.count);
  turn_kernel(dst->src[1], taps, width, part, kernel);
  for (int64_t t = 0; t < v.count; ++t) {
    float* __restrict const to = row_of(dst, t) + part.begin;
    const float* const carried = x[t] + part.begin;
    const float* const own = v[t] + part.begin;
    std::fill_n(to, count, 0.0F);
    const int64_t first = t - (taps - 1) / 2;
    for (int64_t tap = std::max<int64_t>(0, -first); tap < std::min(taps, v.count - first); ++tap)
      add_product(to, v[first + tap] + part.begin, kernel + tap * width + part.begin, count);
    for (int64_t c = 0; c < count; ++c)
      to[c] = (to[c] + own[c]) + carried[c];
  }
}

} // namespace voxgate

// Found by name, since this library is loaded at run time (backends/backend_proc.h).
extern "C" const voxgate::SpeechOps* voxgate_speech_ops() {
  static constexpr voxgate::SpeechOps ops{voxgate::speech_norm,
                                          voxgate::speech_attention,
                                          voxgate::speech_convolution,
                                          voxgate::speech_subsample,
                                          voxgate::speech_subsample_again,
                                          voxgate::speech_finish,
                                          voxgate::speech_memory,
                                          voxgate::tile_ops};
  return &ops;
}

#pragma once

#include "speech_ops.h"

#include <utility>

namespace voxgate {

inline float* floats(const ggml_tensor* tensor) {
  return static_cast<float*>(tensor->data);
}

inline float* row_of(const ggml_tensor* tensor, int64_t row) {
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + row * tensor->nb[1]);
}

// The rows of a matrix, which need not lie side by side.
struct Rows {
  Rows(const ggml_tensor* tensor) : tensor(tensor), count(tensor->ne[1]) {}
  const float* operator[](int64_t row) const { return row_of(tensor, row); }

  const ggml_tensor* tensor;
  int64_t count;
};

// The part of `count` that falls to one of the threads, in multiples of 16 but for the last.
struct Part {
  Part(int64_t count, int ith, int nth) {
    const int64_t size = up_to((count + nth - 1) / nth, 16);
    begin = size * ith < count ? size * ith : count;
    end = begin + size < count ? begin + size : count;
  }
  int64_t begin, end;
};

void speech_norm(ggml_tensor* dst, int ith, int nth, void* user);
void speech_attention(ggml_tensor* dst, int ith, int nth, void* user);
void speech_convolution(ggml_tensor* dst, int ith, int nth, void* user);
void speech_subsample(ggml_tensor* dst, int ith, int nth, void* user);
void speech_subsample_again(ggml_tensor* dst, int ith, int nth, void* user);
void speech_finish(ggml_tensor* dst, int ith, int nth, void* user);
void speech_memory(ggml_tensor* dst, int ith, int nth, void* user);

} // namespace voxgate

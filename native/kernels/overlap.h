#pragma once

#include <ggml.h>

namespace voxgate {

inline bool is_dense(const ggml_tensor* tensor) {
  return tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
}

// Whether they share no memory.
inline bool is_apart(const ggml_tensor* a, const ggml_tensor* b) {
  const auto* const from = static_cast<const char*>(a->data);
  const auto* const other = static_cast<const char*>(b->data);
  return from + ggml_nbytes(a) <= other || other + ggml_nbytes(b) <= from;
}

} // namespace voxgate

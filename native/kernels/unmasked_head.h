#pragma once

// One head of unmasked_attention.h, for its kernels.
#include "speech_kernels.h"
#include "thread_memory.h"

#include <ggml.h>

#include <cstring>

#include "vectors.h"

#ifdef VOXGATE_HAS_VECTORS

namespace voxgate {

constexpr int64_t kDepth = 64; // of a head, in all sizes of Whisper

inline float attention_parameter(const ggml_tensor* dst, int index) {
  float value = 0;
  std::memcpy(&value, dst->op_params + index, sizeof value);
  return value;
}

// The queries of one head, as far as they are to be computed, and what they attend to.
struct UnmaskedHead {
  ggml_tensor* dst;
  const float* offsets; // of the score of each key; null where there are none
  int64_t head, first, end;
  int64_t keys = dst->src[1]->ne[1];
  float scale = attention_parameter(dst, 0);

  const float* query(int64_t i) const { return reinterpret_cast<const float*>(row(0, i)); }
  const ggml_fp16_t* key(int64_t i) const { return reinterpret_cast<const ggml_fp16_t*>(row(1, i)); }
  const ggml_fp16_t* value(int64_t i) const { return reinterpret_cast<const ggml_fp16_t*>(row(2, i)); }
  float* result(int64_t i) const { return row_of(dst, head + i * dst->ne[1]); }

 private:
  const char* row(int source, int64_t i) const {
    const ggml_tensor* tensor = dst->src[source];
    return static_cast<const char*>(tensor->data) + i * tensor->nb[1] + head * tensor->nb[2];
  }
};

// Attends in bfloat16, on AMX tiles or with the instructions of AVX-512. Returns false where there is no
// memory.
bool attend_on_tiles(const UnmaskedHead& head, ThreadMemory& memory);
bool attend_on_vectors(const UnmaskedHead& head, ThreadMemory& memory);

} // namespace voxgate

#endif

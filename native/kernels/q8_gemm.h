#pragma once

#include <cstdint>

struct ggml_compute_params;

namespace voxgate {

// C = A * B over blocks of 32 eight-bit integers with one scale each (ggml's q8_0), exact in the integers.
//
//   A  m rows of k blocks, `lda` blocks apart: the weights, any 8-bit integers
//   B  n columns of k blocks, `ldb` blocks apart: the activations, at most +-127
//   C  n columns of m floats, `ldc` floats apart
//
// All threads of the graph call it with the same arguments and share the work. It returns false in all of
// them, and leaves C untouched, when it is not made for the shape or the processor: it needs AVX2 or
// NEON, and as many rows as two of their registers have lanes.
bool q8_gemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
             const void* b, int64_t ldb, float* c, int64_t ldc);

} // namespace voxgate

#pragma once

#include <cstdint>

struct ggml_compute_params;

namespace voxgate {

// C = A * B on the tiles of a processor with AMX: A is rounded from q8_0 to bfloat16, B from floats, and the
// sums are floats. bfloat16 has 8 bits of precision for each value, where a block of q8_0 has 7 for its
// largest, so the result is nearer to the exact product than that of q8_gemm.
//
//   A  m rows of k blocks of 32 weights (ggml's q8_0), `lda` blocks apart
//   B  n columns of 32 k floats, `ldb` floats apart
//   C  n columns of m floats, `ldc` floats apart
//
// All threads of the graph call it with the same arguments and share the work. It returns false in all of
// them, and leaves C untouched, when it is not made for the shape or the processor, or there is no memory.
bool amx_gemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
              const float* b, int64_t ldb, float* c, int64_t ldc);

} // namespace voxgate

// Compiles ggml's products of matrices (llamafile/sgemm.cpp), once for each CPU library, under another name:
// ours stands in front of it and takes the shapes that it is made for.
#define llamafile_sgemm upstream_llamafile_sgemm
#include <ggml-cpu/llamafile/sgemm.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached
#undef llamafile_sgemm

#include "amx_gemm.h"
#include "q8_gemm.h"
#include "q8_tiles.h"

extern "C" bool llamafile_sgemm(const struct ggml_compute_params* params, int64_t m, int64_t n, int64_t k,
                                const void* a, int64_t lda, const void* b, int64_t ldb, void* c, int64_t ldc,
                                int a_type, int b_type, int c_type) {
  // ggml offers the activations as floats first, and rounds them to 8 bits where that was refused.
  if (a_type == GGML_TYPE_Q8_0 && b_type == GGML_TYPE_F32 && c_type == GGML_TYPE_F32)
    return voxgate::amx_gemm(params, m, n, k, a, lda, static_cast<const float*>(b), ldb,
                             static_cast<float*>(c), ldc);
  const bool q8 = a_type == GGML_TYPE_Q8_0 && b_type == GGML_TYPE_Q8_0 && c_type == GGML_TYPE_F32;
  if (q8 && (voxgate::q8_tiles(params, m, n, k, a, lda, b, ldb, static_cast<float*>(c), ldc) ||
             voxgate::q8_gemm(params, m, n, k, a, lda, b, ldb, static_cast<float*>(c), ldc)))
    return true;
  return upstream_llamafile_sgemm(params, m, n, k, a, lda, b, ldb, c, ldc, a_type, b_type, c_type);
}

#pragma once

#include "q8_steps.h"

#ifdef VOXGATE_HAS_VECTORS

struct ggml_compute_params;

namespace voxgate {

constexpr int64_t kFewColumns = 8; // for fewer, laying out the weights would cost more than it saves

// As q8_gemm, for 1 to kFewColumns - 1 columns and at most kMaxBlocks blocks.
bool q8_few(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const block_q8_0* rows,
            int64_t lda, const block_q8_0* columns, int64_t ldb, float* c, int64_t ldc);

} // namespace voxgate

#endif

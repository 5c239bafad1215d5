#pragma once

#include <cstdint>

struct ggml_compute_params;

namespace voxgate {

// Whether a product with `n` columns, `k` blocks deep, is computed on tiles.
bool q8_tiles_take(int64_t n, int64_t k);

// As q8_gemm, for 3 to 16 columns on the tiles of a processor with AMX: as many as when several texts are
// followed side by side. It takes the same time for any number of them. `k` is even.
bool q8_tiles(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
              const void* b, int64_t ldb, float* c, int64_t ldc);

} // namespace voxgate

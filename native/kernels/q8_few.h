#pragma once

#include "q8_steps.h"

#ifdef VOXGATE_HAS_VECTORS

namespace voxgate {

constexpr int64_t kFewColumns = 8; // for fewer, laying out the weights would cost more than it saves

// Whether a product of `m` rows with `n` columns, `k` blocks deep, is computed here.
constexpr bool is_few(int64_t m, int64_t n, int64_t k) {
  return m >= 2 * kLanes && n >= 1 && n < kFewColumns && k >= 1 && k <= kMaxBlocks && k % kPieceBlocks == 0;
}

// The columns of a product, as a thread keeps them until it makes the next one of these.
class FewColumns {
 public:
  FewColumns(const block_q8_0* columns, int64_t ldb, int64_t n, int64_t k);

  // The products with `m` rows of weights.
  void multiply(const block_q8_0* rows, int64_t lda, int64_t m, float* c, int64_t ldc) const;

 private:
  int64_t n_;
  int64_t k_;
};

} // namespace voxgate

#endif

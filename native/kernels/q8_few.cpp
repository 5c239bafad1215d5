#include "q8_few.h"

#include "thread_memory.h"

#ifdef VOXGATE_HAS_VECTORS

#include <algorithm>
#include <array>

namespace voxgate {
namespace {

// A few columns, as when one token is decoded: the time is that of reading the weights from memory, once.
// They are read in the order they lie in, which the processor's prefetching expects, and asked for some way
// ahead, since prefetching stops at the end of each page. The activations lie ready in pieces.
constexpr int kAhead = 4096; // bytes

struct Piece {
  Integers values[kPieceRegisters];
  Floats scales;
};
static_assert(kRaised == 0 || kPieceRegisters == 1);

using Pieces = std::array<Piece, kMaxBlocks / kPieceBlocks * kFewColumns>;

// One row times `kCount` columns, whose pieces lie `stride` apart. The weights are read and their scales
// unpacked once for all of them. Activations are raised here, and not weights: what that adds is the same for
// all columns. The result of a column is the same to the last bit, however many columns there are.
template <int kCount>
void dot(const block_q8_0* row, const Piece* columns, int64_t stride, int64_t blocks, float* c, int64_t ldc) {
  Floats sums[kCount];
  VOXGATE_UNROLL
  for (int column = 0; column < kCount; ++column)
    sums[column] = spread(0.0F);
  for (int64_t block = 0; block < blocks; block += kPieceBlocks, ++columns) {
    __builtin_prefetch(reinterpret_cast<const char*>(row + block) + kAhead);
    const block_q8_0& next = row[block + kPieceBlocks - 1];
    Integers weights[kPieceRegisters];
    for (int64_t at = 0; at < kPieceRegisters; ++at)
      weights[at] = load_values(row[block], next, at);
    const Floats scales = load_scales(row[block], next);
    const Integers start = kRaised != 0 ? offsets_of(weights[0]) : spread(0);
    VOXGATE_UNROLL
    for (int column = 0; column < kCount; ++column) {
      const Piece& piece = columns[column * stride];
      Integers dots = add_step(start, piece.values[0], weights[0]);
      for (int64_t at = 1; at < kPieceRegisters; ++at)
        dots = add_step(dots, piece.values[at], weights[at]);
      sums[column] = multiply_add(to_floats(dots), piece.scales * scales, sums[column]);
    }
  }
  VOXGATE_UNROLL
  for (int column = 0; column < kCount; ++column)
    c[column * ldc] = sum_of(sums[column]);
}

using Dot = decltype(&dot<1>);
constexpr int64_t kDotColumns = 6;
constexpr std::array<Dot, kDotColumns + 1> kDot{nullptr, dot<1>, dot<2>, dot<3>, dot<4>, dot<5>, dot<6>};

} // namespace

FewColumns::FewColumns(const block_q8_0* columns, int64_t ldb, int64_t n, int64_t k) : n_(n), k_(k) {
  Piece* piece = thread_block<Pieces>().data();
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t block = 0; block < k; block += kPieceBlocks, ++piece) {
      const block_q8_0* source = columns + column * ldb + block;
      const block_q8_0& next = source[kPieceBlocks - 1];
      for (int64_t at = 0; at < kPieceRegisters; ++at)
        piece->values[at] = load_weights(*source, next, at);
      piece->scales = load_scales(*source, next);
    }
  }
}

void FewColumns::multiply(const block_q8_0* rows, int64_t lda, int64_t m, float* c, int64_t ldc) const {
  const Piece* const of_columns = thread_block<Pieces>().data();
  const int64_t pieces = k_ / kPieceBlocks;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n_; column += kDotColumns)
      kDot[static_cast<size_t>(std::min(kDotColumns, n_ - column))](
          rows + row * lda, of_columns + column * pieces, pieces, k_, c + column * ldc + row, ldc);
}

} // namespace voxgate

#endif

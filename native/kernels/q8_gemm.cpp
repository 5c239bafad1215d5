#include "q8_gemm.h"

#include "taken.h"
#include "transpose.h"

#ifdef VOXGATE_TESTS
namespace voxgate {
KernelCalls kernel_calls;
}
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__F16C__)

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"
#include "ggml-cpu-impl.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

// ggml's own product (tinyBLAS) computes one output at a time from two blocks: four instructions around each
// multiplication of 32. Here a strip of weights is laid out so that the sixteen lanes of a register belong to
// sixteen outputs, each lane with four consecutive integers of its row. One instruction then multiplies and
// adds 64 of them, and scales are applied once a block:
//
//   vpdpbusd  unsigned weights (plus 128) x signed activations, four products a lane, added to 32 bits
//
// What the 128 adds is the same for every row, 128 times the sum of the activations, and is taken off
// beforehand. A weight may be -128 then; activations are never less than -127.
namespace voxgate {
namespace {

constexpr int kBlock = QK8_0;      // integers that share a scale
constexpr int kQuads = kBlock / 4; // groups of four, as vpdpbusd takes them
constexpr int kLanes = 16;         // 32-bit lanes of a register
constexpr int kVectors = 2;        // registers of rows
constexpr int kRows = kLanes * kVectors;
constexpr int kColumns = 6;         // 2 x 6 integer and 2 x 6 float accumulators leave room in 32 registers
constexpr int64_t kMaxBlocks = 256; // 8192 integers deep
constexpr int64_t kPrepared = 1 << 15; // blocks of activations a thread prepares at once
constexpr int64_t kFewColumns = 8;     // for fewer, laying out the weights would cost more than it saves

static_assert(kPrepared >= kMaxBlocks * kColumns);

// A strip of weights: for each block, eight groups of four integers of each row, and each row's scale.
struct Strip {
  alignas(64) uint32_t quads[kMaxBlocks][kQuads][kRows];
  alignas(64) float scales[kMaxBlocks][kRows];
};

struct Prepared {
  float scale;
  int32_t offset; // minus 128 times the sum of the block
};

thread_local Strip t_strip;
thread_local std::array<Prepared, kPrepared> t_prepared;

float to_float(ggml_half half) {
  return _cvtsh_ss(half);
}

// Two blocks of sixteen rows are a square of groups, which is turned at once.
void lay_out(const block_q8_0* rows, int64_t lda, int64_t count, int64_t blocks) {
  const __m512i plus_128 = _mm512_set1_epi8(-128); // by exclusive or
  for (int64_t first = 0; first < kRows; first += kLanes) {
    for (int64_t block = 0; block < blocks; block += 2) {
      const int64_t there = std::min<int64_t>(2, blocks - block);
      __m512i quads[kLanes];
      alignas(32) std::array<std::array<ggml_half, kLanes>, 2> scales;
      for (int64_t i = 0; i < kLanes; ++i) {
        // Rows past the last repeat it; their outputs are not stored.
        const block_q8_0* source = rows + std::min(first + i, count - 1) * lda + block;
        const block_q8_0* next = source + there - 1;
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source->qs));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(next->qs));
        quads[i] = _mm512_xor_si512(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), plus_128);
        scales[0][static_cast<size_t>(i)] = source->d;
        scales[1][static_cast<size_t>(i)] = next->d;
      }
      transpose(quads);
      for (int64_t at = 0; at < there; ++at) {
        for (int64_t quad = 0; quad < kQuads; ++quad)
          _mm512_store_si512(&t_strip.quads[block + at][quad][first], quads[at * kQuads + quad]);
        const auto* halves = reinterpret_cast<const __m256i*>(scales[static_cast<size_t>(at)].data());
        _mm512_store_ps(&t_strip.scales[block + at][first], _mm512_cvtph_ps(_mm256_load_si256(halves)));
      }
    }
  }
}

void prepare(const block_q8_0* columns, int64_t ldb, int64_t count, int64_t blocks) {
  Prepared* out = t_prepared.data();
  for (int64_t column = 0; column < count; ++column) {
    for (int64_t block = 0; block < blocks; ++block) {
      const block_q8_0& source = columns[column * ldb + block];
      int sum = 0;
      for (const int8_t value : source.qs)
        sum += value;
      *out++ = {to_float(source.d), -128 * sum};
    }
  }
}

__mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, kLanes)) - 1);
}

// A strip of weights times `kCount` columns. The products of small constants below stay under 100.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
template <int kCount>
void multiply(const block_q8_0* columns, int64_t ldb, const Prepared* prepared, int64_t blocks, float* c,
              int64_t ldc, const std::array<__mmask16, kVectors>& stored) {
  __m512 sums[kVectors][kCount];
  for (int column = 0; column < kCount; ++column)
    for (int vector = 0; vector < kVectors; ++vector)
      sums[vector][column] = _mm512_setzero_ps();

  for (int64_t block = 0; block < blocks; ++block) {
    __m512i dots[kVectors][kCount];
    for (int column = 0; column < kCount; ++column)
      for (int vector = 0; vector < kVectors; ++vector)
        dots[vector][column] = _mm512_set1_epi32(prepared[column * blocks + block].offset);
    for (int quad = 0; quad < kQuads; ++quad) {
      __m512i weights[kVectors];
      for (int vector = 0; vector < kVectors; ++vector)
        weights[vector] = _mm512_load_si512(&t_strip.quads[block][quad][vector * kLanes]);
      for (int column = 0; column < kCount; ++column) {
        int32_t four;
        std::memcpy(&four, &columns[column * ldb + block].qs[4 * quad], sizeof(four));
        const __m512i activations = _mm512_set1_epi32(four);
        for (int vector = 0; vector < kVectors; ++vector)
          dots[vector][column] = _mm512_dpbusd_epi32(dots[vector][column], weights[vector], activations);
      }
    }
    for (int vector = 0; vector < kVectors; ++vector) {
      const __m512 scales = _mm512_load_ps(&t_strip.scales[block][vector * kLanes]);
      for (int column = 0; column < kCount; ++column) {
        const __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(prepared[column * blocks + block].scale));
        sums[vector][column] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[vector][column]), scale, sums[vector][column]);
      }
    }
  }

  for (int column = 0; column < kCount; ++column)
    for (int vector = 0; vector < kVectors; ++vector)
      _mm512_mask_storeu_ps(c + column * ldc + vector * kLanes, stored[vector], sums[vector][column]);
}

using Multiply = decltype(&multiply<kColumns>);
constexpr std::array<Multiply, kColumns + 1> kMultiply{nullptr,     multiply<1>, multiply<2>, multiply<3>,
                                                       multiply<4>, multiply<5>, multiply<6>};
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)

// A few columns, as when one token is decoded: the time is that of reading the weights from memory, once.
// They are read in the order they lie in, which the processor's prefetching expects, and asked for some way
// ahead, since prefetching stops at the end of each page. Two blocks fill a register; their activations lie
// ready with what is to be taken off for the 128.
constexpr int kAhead = 4096; // bytes

struct Pair {
  __m512i values;
  __m512i offsets; // of each lane: minus 128 times the sum of its four values
  __m512 scales;   // of the first block in the lower eight lanes, of the second in the upper
};

thread_local std::array<Pair, kMaxBlocks / 2 * kFewColumns> t_pairs;

__m512i load_values(const block_q8_0* blocks) {
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(blocks[0].qs));
  const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(blocks[1].qs));
  return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}

__m512 load_scales(const block_q8_0* blocks) {
  const __m256i first = _mm256_set1_epi16(static_cast<int16_t>(blocks[0].d));
  return _mm512_cvtph_ps(_mm256_mask_set1_epi16(first, 0xFF00, static_cast<int16_t>(blocks[1].d)));
}

// One row times `kCount` columns, whose pairs lie `stride` apart. The weights are read and their scales
// unpacked once for all of them. The result of a column is the same to the last bit, however many columns
// there are.
template <int kCount>
void dot(const block_q8_0* row, const Pair* columns, int64_t stride, int64_t blocks, float* c, int64_t ldc) {
  const __m512i plus_128 = _mm512_set1_epi8(-128); // by exclusive or
  __m512 sums[kCount];
  for (__m512& sum : sums)
    sum = _mm512_setzero_ps();
  for (int64_t block = 0; block < blocks; block += 2, ++columns) {
    _mm_prefetch(reinterpret_cast<const char*>(row + block) + kAhead, _MM_HINT_T0);
    const __m512i weights = _mm512_xor_si512(load_values(row + block), plus_128);
    const __m512 scales = load_scales(row + block);
    for (int64_t column = 0; column < kCount; ++column) {
      const Pair& pair = columns[column * stride];
      const __m512i dots = _mm512_dpbusd_epi32(pair.offsets, weights, pair.values);
      sums[column] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(pair.scales, scales), sums[column]);
    }
  }
  for (int64_t column = 0; column < kCount; ++column)
    c[column * ldc] = _mm512_reduce_add_ps(sums[column]);
}

using Dot = decltype(&dot<1>);
constexpr int64_t kDotColumns = 6;
constexpr std::array<Dot, kDotColumns + 1> kDot{nullptr, dot<1>, dot<2>, dot<3>, dot<4>, dot<5>, dot<6>};

void multiply_few(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const block_q8_0* rows,
                  int64_t lda, const block_q8_0* columns, int64_t ldb, float* c, int64_t ldc) {
  Pair* pair = t_pairs.data();
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t block = 0; block < k; block += 2) {
      const block_q8_0* source = columns + column * ldb + block;
      const __m512i values = load_values(source);
      const __m512i sums =
          _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(-128), values); // 128, unsigned
      *pair++ = {values, _mm512_sub_epi32(_mm512_setzero_si512(), sums), load_scales(source)};
    }
  }
  const int64_t end = m * (params->ith + 1) / params->nth;
  for (int64_t row = m * params->ith / params->nth; row < end; ++row)
    for (int64_t column = 0; column < n; column += kDotColumns)
      kDot[static_cast<size_t>(std::min(kDotColumns, n - column))](
          rows + row * lda, t_pairs.data() + column * k / 2, k / 2, k, c + column * ldc + row, ldc);
}

} // namespace

bool q8_gemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
             const void* b, int64_t ldb, float* c, int64_t ldc) {
  const bool few = n < kFewColumns;
  if (m < kRows || n < 1 || k < 1 || k > kMaxBlocks || (few && k % 2 != 0))
    return false;
  const auto* rows = static_cast<const block_q8_0*>(a);
  const auto* columns = static_cast<const block_q8_0*>(b);
  if (few) {
    VOXGATE_TAKEN(q8_gemm_few);
    multiply_few(params, m, n, k, rows, lda, columns, ldb, c, ldc);
    return true;
  }
  VOXGATE_TAKEN(q8_gemm);
  const int64_t strips = (m + kRows - 1) / kRows;
  const int64_t panel = std::min(n, kPrepared / k / kColumns * kColumns); // columns prepared at once
  const int64_t panels = (n + panel - 1) / panel;

  if (params->ith == 0)
    ggml_threadpool_chunk_set(params->threadpool, params->nth);
  ggml_barrier(params->threadpool);
  int64_t prepared = -1;
  for (int64_t job = params->ith; job < strips * panels;
       job = ggml_threadpool_chunk_add(params->threadpool, 1)) {
    const int64_t first_column = job / strips * panel;
    const int64_t last_column = std::min(n, first_column + panel);
    if (prepared != first_column)
      prepare(columns + first_column * ldb, ldb, last_column - first_column, k);
    prepared = first_column;

    const int64_t first_row = job % strips * kRows;
    const int64_t count = std::min<int64_t>(kRows, m - first_row);
    lay_out(rows + first_row * lda, lda, count, k);
    const std::array<__mmask16, kVectors> stored{first_lanes(count), first_lanes(count - kLanes)};
    for (int64_t column = first_column; column < last_column; column += kColumns) {
      const auto width = static_cast<size_t>(std::min<int64_t>(kColumns, last_column - column));
      kMultiply[width](columns + column * ldb, ldb, t_prepared.data() + (column - first_column) * k, k,
                       c + column * ldc + first_row, ldc, stored);
    }
  }
  ggml_barrier(params->threadpool);
  return true;
}

} // namespace voxgate

#else

namespace voxgate {

bool q8_gemm(const ggml_compute_params*, int64_t, int64_t, int64_t, const void*, int64_t, const void*,
             int64_t, float*, int64_t) {
  return false;
}

} // namespace voxgate

#endif

#pragma once

// The integers of q8_gemm.cpp as one step of it takes them. A step multiplies some consecutive integers of a
// row with those of a column, and adds them up in a lane of 32 bits. There are two kinds:
//
//   quads  with VNNI or ARM's dot product: four a lane, in one instruction
//   pairs  without: both as 16 bits, two a lane, in two instructions, or four on ARM. The product of 8 bits
//          on x86 (vpmaddubsw) adds two of its results in 16 bits, which overflow.
//
// VNNI multiplies unsigned integers with signed ones, so its weights are raised by 128. What that adds is the
// same for every row, 128 times the sum of the activations, and is taken off beforehand. A weight may be -128
// everywhere; activations are never less than -127. So the sums of all kinds are exact.
//
// ARM's product of 8-bit matrices takes two rows and two columns at once, eight integers of each, where there
// are many columns.
#include "vectors.h"

#ifdef VOXGATE_HAS_VECTORS

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"

#include <cstring>

namespace voxgate {

constexpr int64_t kBlock = QK8_0;   // integers that share a scale
constexpr int64_t kMaxBlocks = 256; // of a row: 8192 integers

#ifdef VOXGATE_HAS_QUADS
constexpr bool kQuads = true;
using Step = uint8_t[4];
using StepSource = block_q8_0; // columns are read as they lie
#ifdef VOXGATE_NEON
constexpr int32_t kRaised = 0; // what is added to a weight
#else
constexpr int32_t kRaised = 128;
#endif
#else
constexpr bool kQuads = false;
constexpr int32_t kRaised = 0;
using Step = int16_t[2];
struct StepSource {
  int16_t qs[kBlock];
};
#endif

// A piece is what fills whole registers: `kPieceBlocks` blocks in `kPieceRegisters` of them.
constexpr int64_t kBlockSteps = kQuads ? kBlock / 4 : kBlock / 2;
constexpr int64_t kPieceBlocks = kBlockSteps < kLanes ? kLanes / kBlockSteps : 1;
constexpr int64_t kPieceRegisters = kBlockSteps > kLanes ? kBlockSteps / kLanes : 1;

// A register of a piece as it lies. Of two blocks, `second` is the other one.
inline Integers load_values(const block_q8_0& first, const block_q8_0& second, int64_t at) {
#if defined(VOXGATE_HAS_QUADS) && defined(VOXGATE_WIDE_VECTORS)
  static_cast<void>(at);
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first.qs));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second.qs));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
#elif defined(VOXGATE_HAS_QUADS)
  static_cast<void>(second);
  return load(static_cast<const void*>(first.qs + 4 * kLanes * at));
#else
  static_cast<void>(second);
  return widened(first.qs + 2 * kLanes * at);
#endif
}

// The same of weights.
inline Integers load_weights(const block_q8_0& first, const block_q8_0& second, int64_t at) {
  const Integers values = load_values(first, second, at);
  return kRaised != 0 ? values ^ spread(static_cast<int32_t>(0x80808080)) : values;
}

// For each lane the scale of its block.
inline Floats load_scales(const block_q8_0& first, const block_q8_0& second) {
#if defined(VOXGATE_HAS_QUADS) && defined(VOXGATE_WIDE_VECTORS)
  const __m256i low = _mm256_set1_epi16(static_cast<int16_t>(first.d));
  return _mm512_cvtph_ps(_mm256_mask_set1_epi16(low, 0xFF00, static_cast<int16_t>(second.d)));
#else
  static_cast<void>(second);
  return spread(to_float(first.d));
#endif
}

inline Integers add_step(Integers sums, Integers weights, Integers values) {
#ifdef VOXGATE_HAS_QUADS
  return add_quads(sums, weights, values);
#else
  return add_pairs(sums, weights, values);
#endif
}

// What the sums of a register of activations begin with, where weights are raised.
inline Integers offsets_of(Integers values) {
  return negative(add_step(spread(0), spread(static_cast<int32_t>(0x80808080)), values));
}

// What the sum of a whole block of activations begins with.
inline int32_t offset_of(const block_q8_0& block) {
  int32_t sum = 0;
  for (const int8_t value : block.qs)
    sum += value;
  return -kRaised * sum;
}

inline Integers spread_step(const StepSource& block, int64_t step) {
  int32_t integers;
  static_assert(sizeof(Step) == sizeof(integers));
  std::memcpy(&integers, reinterpret_cast<const char*>(block.qs) + step * int64_t{sizeof(Step)},
              sizeof(integers));
  return spread(integers);
}

} // namespace voxgate

#endif

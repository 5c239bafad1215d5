#pragma once

// The registers that the kernels are written for: those of AVX-512, or else of AVX2 with FMA and F16C, or
// NEON's on 64-bit ARM. Each of ggml's CPU libraries is compiled for one level of instructions (cpu_level.h)
// and has the widest of them. VOXGATE_HAS_VECTORS is not defined where a library has none of these, and ggml
// computes there.
#include "../unroll.h"

#include <cstdint>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VOXGATE_HAS_VECTORS
#define VOXGATE_WIDE_VECTORS
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define VOXGATE_HAS_VECTORS
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define VOXGATE_HAS_VECTORS
#define VOXGATE_NEON
#endif

#ifdef VOXGATE_HAS_VECTORS

#include "transpose.h"

#ifdef VOXGATE_NEON
#include <algorithm>
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

namespace voxgate {

inline float to_float(uint16_t half) {
#ifdef VOXGATE_NEON
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(half))), 0);
#else
  return _cvtsh_ss(half);
#endif
}

#if defined(VOXGATE_NEON)

using Floats = float32x4_t;
using Integers = int32x4_t;
constexpr int64_t kLanes = 4;      // of 32 bits
constexpr int64_t kRegisters = 32; // of a core

inline Floats load(const float* from) {
  return vld1q_f32(from);
}
inline Integers load(const void* from) {
  return vld1q_s32(static_cast<const int32_t*>(from));
}
inline void store(float* to, Floats values) {
  vst1q_f32(to, values);
}
inline void store(void* to, Integers values) {
  vst1q_s32(static_cast<int32_t*>(to), values);
}
inline Floats load_first(const float* from, int64_t count) {
  float lanes[kLanes] = {};
  std::copy_n(from, std::min(count, kLanes), lanes);
  return load(lanes);
}
inline void store_first(float* to, Floats values, int64_t count) {
  float lanes[kLanes];
  store(lanes, values);
  std::copy_n(lanes, std::min(count, kLanes), to);
}
inline Floats spread(float value) {
  return vdupq_n_f32(value);
}
inline Integers spread(int32_t value) {
  return vdupq_n_s32(value);
}
inline Integers negative(Integers values) {
  return vnegq_s32(values);
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return vfmaq_f32(c, a, b);
}
inline Floats to_floats(Integers values) {
  return vcvtq_f32_s32(values);
}
// `halves` are kLanes 16-bit floats.
inline Floats from_halves(const uint16_t* halves) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
}
inline float sum_of(Floats values) {
  return vaddvq_f32(values);
}
// 2 * kLanes integers of 8 bits, as 16 bits.
inline Integers widened(const int8_t* from) {
  return vreinterpretq_s32_s16(vmovl_s8(vld1_s8(from)));
}
// Adds to each lane the products of its two integers of 16 bits. It is exact where those come of 8 bits.
inline Integers add_pairs(Integers sums, Integers a, Integers b) {
  const int16x8_t left = vreinterpretq_s16_s32(a);
  const int16x8_t right = vreinterpretq_s16_s32(b);
  const Integers low = vmull_s16(vget_low_s16(left), vget_low_s16(right));
  return vaddq_s32(sums, vpaddq_s32(low, vmull_high_s16(left, right)));
}
#ifdef __ARM_FEATURE_DOTPROD
#define VOXGATE_HAS_QUADS
// Adds to each lane the products of its four integers of 8 bits, both of them signed.
inline Integers add_quads(Integers sums, Integers a, Integers b) {
  return vdotq_s32(sums, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
#define VOXGATE_HAS_SQUARES
// Two rows of eight integers of 8 bits.
inline Integers two_rows(const int8_t* first, const int8_t* second) {
  return vreinterpretq_s32_s8(vcombine_s8(vld1_s8(first), vld1_s8(second)));
}
// Adds to the lanes the products of the first row of `a` with both of `b`, and then those of the second row.
inline Integers add_squares(Integers sums, Integers a, Integers b) {
  return vmmlaq_s32(sums, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#endif

#elif defined(VOXGATE_WIDE_VECTORS)

using Floats = __m512;
using Integers = __m512i;
constexpr int64_t kLanes = 16;
constexpr int64_t kRegisters = 32;

inline Floats load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Integers load(const void* from) {
  return _mm512_loadu_si512(from);
}
inline void store(float* to, Floats values) {
  _mm512_storeu_ps(to, values);
}
inline void store(void* to, Integers values) {
  _mm512_storeu_si512(to, values);
}
inline __mmask16 first_lanes(int64_t count) {
  return count >= kLanes ? 0xFFFF : static_cast<__mmask16>((1U << count) - 1);
}
inline Floats load_first(const float* from, int64_t count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), from);
}
inline void store_first(float* to, Floats values, int64_t count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), values);
}
inline Floats spread(float value) {
  return _mm512_set1_ps(value);
}
inline Integers spread(int32_t value) {
  return _mm512_set1_epi32(value);
}
inline Integers negative(Integers values) {
  return _mm512_sub_epi32(_mm512_setzero_si512(), values);
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Floats to_floats(Integers values) {
  return _mm512_cvtepi32_ps(values);
}
inline Floats from_halves(const uint16_t* halves) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)));
}
inline float sum_of(Floats values) {
  return _mm512_reduce_add_ps(values);
}
inline Integers widened(const int8_t* from) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Integers add_pairs(Integers sums, Integers a, Integers b) {
  return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
}
#ifdef __AVX512VNNI__
#define VOXGATE_HAS_QUADS
// Adds to each lane the products of its four integers of 8 bits: unsigned ones times signed ones.
inline Integers add_quads(Integers sums, Integers of_unsigned, Integers of_signed) {
  return _mm512_dpbusd_epi32(sums, of_unsigned, of_signed);
}
#endif

#else

using Floats = __m256;
using Integers = __m256i;
constexpr int64_t kLanes = 8;
constexpr int64_t kRegisters = 16;

inline Floats load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Integers load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline void store(float* to, Floats values) {
  _mm256_storeu_ps(to, values);
}
inline void store(void* to, Integers values) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), values);
}
inline Integers first_lanes(int64_t count) {
  const Integers lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
}
inline Floats load_first(const float* from, int64_t count) {
  return _mm256_maskload_ps(from, first_lanes(count));
}
inline void store_first(float* to, Floats values, int64_t count) {
  _mm256_maskstore_ps(to, first_lanes(count), values);
}
inline Floats spread(float value) {
  return _mm256_set1_ps(value);
}
inline Integers spread(int32_t value) {
  return _mm256_set1_epi32(value);
}
inline Integers negative(Integers values) {
  return _mm256_sub_epi32(_mm256_setzero_si256(), values);
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Floats to_floats(Integers values) {
  return _mm256_cvtepi32_ps(values);
}
inline Floats from_halves(const uint16_t* halves) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}
inline float sum_of(Floats values) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}
inline Integers widened(const int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Integers add_pairs(Integers sums, Integers a, Integers b) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}
#if defined(__AVXVNNI__)
#define VOXGATE_HAS_QUADS
inline Integers add_quads(Integers sums, Integers of_unsigned, Integers of_signed) {
  return _mm256_dpbusd_avx_epi32(sums, of_unsigned, of_signed);
}
#elif defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define VOXGATE_HAS_QUADS
inline Integers add_quads(Integers sums, Integers of_unsigned, Integers of_signed) {
  return _mm256_dpbusd_epi32(sums, of_unsigned, of_signed);
}
#endif

#endif

} // namespace voxgate

#endif

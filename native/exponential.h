#pragma once

#include <cmath>
#include <cstdint>

namespace voxgate {

// exp(x) for x <= 0, without a branch or a call, so that the compiler can vectorize it. It is 2^n * exp(r)
// with |r| <= ln(2)/2, by a polynomial (Cephes, expf.c, https://www.netlib.org/cephes/). The relative error
// is below 2e-7.
inline float exponential(float x) {
  constexpr float smallest = -87;   // below it, the result is not a normal float
  constexpr float round = 12582912; // 1.5 * 2^23; adding it rounds to an integer
  const float bounded = x < smallest ? smallest : x;
  const float shifted = bounded * 1.44269504F + round;
  const float n = shifted - round;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1;
  const auto bits = __builtin_bit_cast(uint32_t, p) + (__builtin_bit_cast(uint32_t, shifted) << 23);
  const auto scaled = __builtin_bit_cast(float, bits);
  return x < smallest ? 0 : scaled;
}

inline float sigmoid(float x) {
  const float e = exponential(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

inline float hyperbolic_tangent(float x) {
  const float e = exponential(-2 * std::fabs(x));
  return std::copysign((1 - e) / (1 + e), x);
}

} // namespace voxgate

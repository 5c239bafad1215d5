#include "turns/activations.h"

#include "exponential.h"
#include "simd_dispatch.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

VOXGATE_VECTOR_CLONES
void exponentials(float* values, size_t count, float largest) {
  for (size_t i = 0; i < count; ++i)
    values[i] = exponential(values[i] - largest);
}

} // namespace

// The error function is 7.1.26 of Abramowitz and Stegun, which is within 1.5e-7.
VOXGATE_VECTOR_CLONES
void gelu(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float x = values[i] * 0.70710678F;
    const float t = 1 / (1 + 0.3275911F * std::fabs(x));
    const float tail =
        t *
        (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F)))) *
        exponential(-x * x);
    values[i] *= 0.5F * (1 + std::copysign(1 - tail, x));
  }
}

VOXGATE_VECTOR_CLONES
void tangents(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = hyperbolic_tangent(values[i]);
}

VOXGATE_VECTOR_CLONES
void add(const float* values, size_t count, float* sums) {
  for (size_t i = 0; i < count; ++i)
    sums[i] += values[i];
}

VOXGATE_VECTOR_CLONES
void scale(float* values, size_t count, float factor) {
  for (size_t i = 0; i < count; ++i)
    values[i] *= factor;
}

void softmax(float* values, size_t count) {
  exponentials(values, count, *std::max_element(values, values + count));
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += values[i];
  scale(values, count, static_cast<float>(1 / sum));
}

} // namespace voxgate

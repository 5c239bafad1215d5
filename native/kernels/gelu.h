#pragma once

#include "kernel_calls.h"
#include "vectors.h"

#include <vec.h>

namespace voxgate {

#ifdef VOXGATE_HAS_VECTORS
// GELU in its tanh form (https://arxiv.org/abs/1606.08415), which is x * sigmoid(2u) with
// u = sqrt(2 / pi) * (x + 0.044715 x^3), by the exponential that ggml has for vectors.
inline void gelu_row(int n, float* y, const float* x) {
  VOXGATE_COUNT_CALL(gelu);
  const Floats one = spread(1.0F);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const Floats v = left >= kLanes ? load(x + i) : load_first(x + i, left);
    const Floats cubic = multiply_add(v * v, spread(GELU_COEF_A), one);
    const Floats minus_2u = spread(-2 * SQRT_2_OVER_PI) * (v * cubic);
    const Floats result = v / (one + ggml_v_expf(minus_2u));
    if (left >= kLanes)
      store(y + i, result);
    else
      store_first(y + i, result, left);
  }
}
#else
inline void gelu_row(int n, float* y, const float* x) {
  ggml_vec_gelu_f32(n, y, x);
}
#endif

} // namespace voxgate

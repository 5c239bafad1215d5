// ggml's operations, with two steps inside them done another way. Compiled in place of ggml's file, once for
// each CPU library.
#include <ggml-cpu.h>
#include <ggml-impl.h>
#include <vec.h>

// Attention converts its values with a portable function, bit by bit. This one has the processor's
// instruction.
#define ggml_fp16_to_fp32_row ggml_cpu_fp16_to_fp32

#if defined(__AVX512F__) && defined(__AVX512DQ__)
namespace {

// GELU in its tanh form (https://arxiv.org/abs/1606.08415), which is x * sigmoid(2u) with
// u = sqrt(2 / pi) * (x + 0.044715 x^3), by the exponential that ggml has for vectors. ggml looks every value
// up in a table of 16-bit floats.
void vec_gelu(const int n, float* y, const float* x) {
  const __m512 one = _mm512_set1_ps(1);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 there = n - i < 16 ? static_cast<__mmask16>((1U << (n - i)) - 1) : 0xFFFF;
    const __m512 v = _mm512_maskz_loadu_ps(there, x + i);
    const __m512 cubic = _mm512_fmadd_ps(_mm512_mul_ps(v, v), _mm512_set1_ps(GELU_COEF_A), one);
    const __m512 minus_2u = _mm512_mul_ps(_mm512_set1_ps(-2 * SQRT_2_OVER_PI), _mm512_mul_ps(v, cubic));
    _mm512_mask_storeu_ps(y + i, there, _mm512_div_ps(v, _mm512_add_ps(one, ggml_v_expf(minus_2u))));
  }
}

} // namespace
#define ggml_vec_gelu_f32 vec_gelu
#endif

#include <ggml-cpu/ops.cpp>

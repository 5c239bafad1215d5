#include "audio/real_fft.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace voxgate {
namespace {

using Complex = std::complex<float>;

// The product is written out, because operator* of std::complex checks for infinities, which costs more than
// the product.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
Complex times_minus_i(Complex a) {
  return {a.imag(), -a.real()};
}

void transform(std::array<Complex, 2>& x) {
  const Complex a = x[0];
  x = {a + x[1], a - x[1]};
}

void transform(std::array<Complex, 4>& x) {
  const Complex even = x[0] + x[2];
  const Complex even_difference = x[0] - x[2];
  const Complex odd = x[1] + x[3];
  const Complex odd_difference = times_minus_i(x[1] - x[3]);
  x = {even + odd, even_difference + odd_difference, even - odd, even_difference - odd_difference};
}

void transform(std::array<Complex, 5>& x) {
  constexpr float c1 = 0.30901699437494745F; // cos(2 pi / 5), cos(4 pi / 5) and their sines
  constexpr float c2 = -0.8090169943749475F;
  constexpr float s1 = 0.9510565162951535F;
  constexpr float s2 = 0.5877852522924731F;
  const Complex near_sum = x[1] + x[4];
  const Complex near_difference = x[1] - x[4];
  const Complex far_sum = x[2] + x[3];
  const Complex far_difference = x[2] - x[3];
  const Complex a1 = x[0] + c1 * near_sum + c2 * far_sum;
  const Complex a2 = x[0] + c2 * near_sum + c1 * far_sum;
  const Complex b1 = times_minus_i(s1 * near_difference + s2 * far_difference);
  const Complex b2 = times_minus_i(s2 * near_difference - s1 * far_difference);
  x = {x[0] + near_sum + far_sum, a1 + b1, a2 + b2, a2 - b2, a1 - b1};
}

// One pass of Stockham's transform, which also sorts the values. It makes `stride` transforms of `length`
// each, side by side. `turns` holds exp(-2 pi i k / (length * unit)).
template <size_t kRadix>
void pass(const Complex* in, Complex* out, size_t length, size_t stride, const Complex* turns, size_t unit) {
  const size_t parts = length / kRadix;
  for (size_t part = 0; part < parts; ++part) {
    for (size_t lane = 0; lane < stride; ++lane) {
      std::array<Complex, kRadix> x;
      for (size_t k = 0; k < kRadix; ++k)
        x[k] = in[lane + stride * (part + parts * k)];
      transform(x);
      for (size_t k = 0; k < kRadix; ++k)
        out[lane + stride * (kRadix * part + k)] = times(x[k], turns[part * k * unit]);
    }
  }
}

} // namespace

RealFft::RealFft(size_t size) : half_(size / 2), turns_(size), values_(half_ + 1), spare_(half_ + 1) {
  for (size_t k = 0; k < size; ++k)
    turns_[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size));
  size_t rest = half_;
  for (const size_t radix : {5, 4, 2})
    for (; rest % radix == 0; rest /= radix)
      radices_.push_back(radix);
}

// The even samples become the real and the odd ones the imaginary parts of a transform of half the size.
// https://en.wikipedia.org/wiki/Fast_Fourier_transform#FFT_algorithms_specialized_for_real_or_symmetric_data
std::span<const Complex> RealFft::operator()(std::span<const float> samples) {
  const auto sample = [samples](size_t i) { return i < samples.size() ? samples[i] : 0; };
  for (size_t i = 0; i < half_; ++i)
    values_[i] = {sample(2 * i), sample(2 * i + 1)};

  size_t length = half_;
  size_t stride = 1;
  for (const size_t radix : radices_) {
    const auto run = radix == 5 ? pass<5> : radix == 4 ? pass<4> : pass<2>;
    run(values_.data(), spare_.data(), length, stride, turns_.data(), 2 * stride);
    std::swap(values_, spare_);
    length /= radix;
    stride *= radix;
  }

  for (size_t k = 0; k <= half_; ++k) {
    const Complex here = values_[k % half_];
    const Complex mirror = std::conj(values_[(half_ - k) % half_]);
    spare_[k] = 0.5F * (here + mirror + times(turns_[k], times_minus_i(here - mirror)));
  }
  return spare_;
}

} // namespace voxgate

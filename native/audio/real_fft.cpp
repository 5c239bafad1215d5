#include "audio/real_fft.h"

#include <algorithm>
#include <array>
#include <numbers>
#include <utility>

namespace voxgate {
namespace {

using Complex = RealFft::Complex;
using Turn = std::complex<float>;

Complex operator+(const Complex& a, const Complex& b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
Complex operator-(const Complex& a, const Complex& b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}
Complex operator*(float factor, const Complex& a) {
  return {factor * a.real, factor * a.imaginary};
}
Complex operator*(const Complex& a, Turn b) {
  return {a.real * b.real() - a.imaginary * b.imag(), a.real * b.imag() + a.imaginary * b.real()};
}
Complex times_minus_i(const Complex& a) {
  return {a.imaginary, -a.real};
}

void transform(std::array<Complex, 2>& x) {
  x = {x[0] + x[1], x[0] - x[1]};
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
// each, one beside the other. `turns` holds exp(-2 pi i k / (length * unit)).
template <size_t kRadix>
void pass(const Complex* in, Complex* out, size_t length, size_t stride, const Turn* turns, size_t unit) {
  const size_t parts = length / kRadix;
  for (size_t part = 0; part < parts; ++part) {
    for (size_t lane = 0; lane < stride; ++lane) {
      std::array<Complex, kRadix> x;
      for (size_t k = 0; k < kRadix; ++k)
        x[k] = in[lane + stride * (part + parts * k)];
      transform(x);
      for (size_t k = 0; k < kRadix; ++k)
        out[lane + stride * (kRadix * part + k)] = x[k] * turns[part * k * unit];
    }
  }
}

// Transforms the first of the two memories and returns the one that holds the result.
Complex* transformed(std::span<const size_t> radices, size_t length, const Turn* turns, Complex* values,
                     Complex* spare) {
  size_t stride = 1;
  for (const size_t radix : radices) {
    if (radix == 5)
      pass<5>(values, spare, length, stride, turns, 2 * stride);
    else if (radix == 4)
      pass<4>(values, spare, length, stride, turns, 2 * stride);
    else
      pass<2>(values, spare, length, stride, turns, 2 * stride);
    std::swap(values, spare);
    length /= radix;
    stride *= radix;
  }
  return values;
}

// Of the transform of half the size, in which the even samples are the real and the odd ones the imaginary
// parts:
// https://en.wikipedia.org/wiki/Fast_Fourier_transform#FFT_algorithms_specialized_for_real_or_symmetric_data
void take_powers(const Complex* values, size_t half, const Turn* turns, RealFft::Values* powers) {
  for (size_t k = 0; k <= half; ++k) {
    const Complex here = values[k < half ? k : 0];
    const Complex& other = values[k > 0 ? half - k : 0];
    const Complex mirror{other.real, -other.imaginary};
    const Complex bin = 0.5F * (here + mirror + times_minus_i(here - mirror) * turns[k]);
    powers[k] = bin.real * bin.real + bin.imaginary * bin.imaginary;
  }
}

} // namespace

RealFft::RealFft(size_t size)
    : half_(size / 2), turns_(size), values_(half_), spare_(half_), powers_(half_ + 1) {
  for (size_t k = 0; k < size; ++k)
    turns_[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size));
  size_t rest = half_;
  for (const size_t radix : {5, 4, 2})
    for (; rest % radix == 0; rest /= radix)
      radices_.push_back(radix);
}

std::span<const RealFft::Values> RealFft::powers(std::span<const Values> samples) {
  const auto sample = [samples](size_t i) { return i < samples.size() ? samples[i] : Values{}; };
  for (size_t i = 0; i < half_; ++i)
    values_[i] = {sample(2 * i), sample(2 * i + 1)};
  const Complex* spectrum = transformed(radices_, half_, turns_.data(), values_.data(), spare_.data());
  take_powers(spectrum, half_, turns_.data(), powers_.data());
  return powers_;
}

} // namespace voxgate

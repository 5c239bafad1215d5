#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// The discrete Fourier transform of real samples. An object holds the working memory, so it belongs to one
// thread.
class RealFft {
 public:
  // `size` must be even, and its half a product of 2, 4 and 5: 400, 512 ...
  explicit RealFft(size_t size);

  // Takes at most `size` samples; missing ones count as zeros. Returns the bins from 0 to the Nyquist
  // frequency, which are valid until the next call.
  std::span<const std::complex<float>> operator()(std::span<const float> samples);

 private:
  using Complex = std::complex<float>;

  size_t half_;
  std::vector<size_t> radices_;
  std::vector<Complex> turns_;  // exp(-2 pi i k / size), k < size
  std::vector<Complex> values_; // a bin and its mirror, up to the Nyquist frequency
  std::vector<Complex> spare_;
};

} // namespace voxgate

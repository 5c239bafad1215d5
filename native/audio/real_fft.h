#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// The discrete Fourier transform of real samples. An object belongs to one thread: it holds the working
// space.
class RealFft {
 public:
  // `size` is even and its half a product of 2, 4 and 5: 400, 512 ...
  explicit RealFft(size_t size);

  // `samples`: at most `size`, the rest are zeros. Returns the bins from 0 to the Nyquist frequency, valid
  // until the next call.
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

#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// The discrete Fourier transform of real samples, of several frames side by side. An object holds the working
// memory, so it belongs to one thread.
class RealFft {
 public:
  static constexpr size_t kFrames = 4; // a register of any processor
  // A value of each frame.
  using Values = float __attribute__((vector_size(kFrames * sizeof(float))));
  struct Complex {
    Values real;
    Values imaginary;
  };

  // `size` must be even, and its half a product of 2, 4 and 5: 400, 512 ...
  explicit RealFft(size_t size);

  // Takes at most `size` samples of each frame; missing ones count as zeros. Returns the squared magnitudes
  // of the bins from 0 to the Nyquist frequency, which are valid until the next call.
  std::span<const Values> powers(std::span<const Values> samples);

 private:
  size_t half_;
  std::vector<size_t> radices_;
  std::vector<std::complex<float>> turns_; // exp(-2 pi i k / size), k < size
  std::vector<Complex> values_;
  std::vector<Complex> spare_;
  std::vector<Values> powers_;
};

} // namespace voxgate

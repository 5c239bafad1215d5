#pragma once

#include "audio/real_fft.h"

#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// The energies of a spectrum in mel bands, of several frames side by side.
class MelBank {
 public:
  using Values = RealFft::Values;

  // `filters` is [bands][bins]; most weights are 0.
  MelBank(std::span<const float> filters, size_t bands);

  size_t bands() const { return bands_.size(); }

  // The sum of the weighted powers of each bin, for each band; `powers` holds the bins.
  void energies(std::span<const Values> powers, std::span<Values> out) const;

 private:
  struct Band {
    size_t first_bin = 0;
    std::vector<float> weights; // from the first that is not 0 to the last
  };

  std::vector<Band> bands_;
};

} // namespace voxgate

#pragma once

#include "cancel.h"
#include "layers/network_weights.h"
#include "layers/panels.h"

#include <string>
#include <vector>

namespace voxgate {

// One direction of a layer of an LSTM (https://www.bioinf.jku.at/publications/older/2604.pdf).
class Lstm {
 public:
  static constexpr size_t kHidden = 128;
  // Floats that compute() needs for one window.
  static constexpr size_t kWorkFloats = (16 * 4 + 1) * kHidden;

  Lstm(NetworkWeights& weights, const std::string& name, size_t inputs);

  // `in` is [frame][window][inputs], and kHidden values go to each row of `out`, [frame][window] and 2 *
  // kHidden apart. All windows take a step together, so that the weights are read once. Each is computed in
  // the same way, however many there are.
  void compute(const float* in, size_t frames, size_t windows, bool backward, float* work, float* out,
               const CancelToken& cancel) const;

 private:
  size_t inputs_;
  Panels input_; // of the gates: input, forget, cell, output
  Panels recurrent_;
};

} // namespace voxgate

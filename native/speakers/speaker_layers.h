#pragma once

#include "speakers/panels.h"
#include "speakers/speaker_weights.h"

#include <cstdint>
#include <string>
#include <vector>

// What both parts of CAM++ share.

namespace voxgate {

inline int64_t extent(size_t value) {
  return static_cast<int64_t>(value);
}

// Takes the weights of a linear layer, of `shape` [outputs][inputs][taps...], and its bias, if it has one.
// Taps come before the inputs in the rows that it is multiplied with.
Panels speaker_layer(SpeakerWeights& weights, const std::string& name, const std::vector<int64_t>& shape,
                     bool has_bias);

void relu(float* values, size_t count);

} // namespace voxgate

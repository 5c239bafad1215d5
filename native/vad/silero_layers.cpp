#include "vad/silero_layers.h"

#include "exponential.h"
#include "simd_dispatch.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

using Panel = SileroLayer::Panel;
constexpr size_t kPanel = SileroLayer::kPanel;

// The number of sums that are added to in turn, so that no addition waits for the one before. Four sums of a
// panel just fit into the registers, and the compiler keeps plain arrays of this size there.
constexpr size_t kSums = 4;
static_assert(kSileroBatch % kSums == 0 && kSileroHidden % kSums == 0);

} // namespace

SileroLayer::SileroLayer(const std::vector<float>& weight, const std::vector<float>& bias_values,
                         size_t outputs, size_t taps)
    : depth(weight.size() / outputs) {
  const size_t panels = (outputs + kPanel - 1) / kPanel;
  const size_t inputs = depth / taps;
  weights.resize(panels * depth);
  bias.resize(panels);
  for (size_t i = 0; i < weight.size(); ++i) {
    const size_t output = i / depth;
    const size_t input = i % depth / taps;
    const size_t tap = i % taps;
    weights[output / kPanel * depth + tap * inputs + input].lanes[output % kPanel] = weight[i];
  }
  for (size_t i = 0; i < bias_values.size(); ++i)
    bias[i / kPanel].lanes[i % kPanel] = bias_values[i];
}

VOXGATE_VECTOR_CLONES
void convolve(const SileroLayer& layer, const SileroFrames& in, size_t windows, size_t first, size_t stride,
              bool relu, SileroFrames& out) {
  for (size_t panel = 0; panel < layer.bias.size(); ++panel) {
    const Panel* weights = &layer.weights[panel * layer.depth];
    for (size_t row = 0; row < windows * out.count; row += kSums) {
      const float* sources[kSums];
      float sums[kSums][kPanel];
      for (size_t i = 0; i < kSums; ++i) {
        sources[i] = in.at((row + i) / out.count, first + (row + i) % out.count * stride);
        for (size_t lane = 0; lane < kPanel; ++lane)
          sums[i][lane] = layer.bias[panel].lanes[lane];
      }
      for (size_t k = 0; k < layer.depth; ++k)
        for (size_t i = 0; i < kSums; ++i)
          for (size_t lane = 0; lane < kPanel; ++lane)
            sums[i][lane] += weights[k].lanes[lane] * sources[i][k];
      for (size_t i = 0; i < kSums; ++i) {
        float* target = out.at((row + i) / out.count, 1 + (row + i) % out.count) + panel * kPanel;
        for (size_t lane = 0; lane < kPanel; ++lane)
          target[lane] = relu && !(sums[i][lane] > 0) ? 0 : sums[i][lane];
      }
    }
  }
}

VOXGATE_VECTOR_CLONES
void magnitudes(const SileroFrames& spectrum, size_t windows, SileroFrames& out) {
  for (size_t i = 0; i < windows * out.count; ++i) {
    const float* real = spectrum.at(i / out.count, 1 + i % out.count);
    const float* imaginary = real + out.width;
    float* target = out.at(i / out.count, 1 + i % out.count);
    for (size_t bin = 0; bin < out.width; ++bin)
      target[bin] = std::sqrt(real[bin] * real[bin] + imaginary[bin] * imaginary[bin]);
  }
}

VOXGATE_VECTOR_CLONES
void advance(const SileroLayer& recurrent, const float* input, SileroState& state) {
  float gates[4 * kSileroHidden];
  for (size_t panel = 0; panel < recurrent.bias.size(); ++panel) {
    const Panel* weights = &recurrent.weights[panel * kSileroHidden];
    float sums[kSums][kPanel];
    for (size_t i = 0; i < kSums; ++i)
      for (size_t lane = 0; lane < kPanel; ++lane)
        sums[i][lane] = 0;
    for (size_t k = 0; k < kSileroHidden; k += kSums)
      for (size_t i = 0; i < kSums; ++i)
        for (size_t lane = 0; lane < kPanel; ++lane)
          sums[i][lane] += weights[k + i].lanes[lane] * state.hidden[k + i];
    for (size_t lane = 0; lane < kPanel; ++lane)
      gates[panel * kPanel + lane] = input[panel * kPanel + lane] + recurrent.bias[panel].lanes[lane] +
                                     ((sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]));
  }
  for (size_t i = 0; i < kSileroHidden; ++i) {
    const float taken = sigmoid(gates[i]) * hyperbolic_tangent(gates[2 * kSileroHidden + i]);
    state.cell[i] = sigmoid(gates[kSileroHidden + i]) * state.cell[i] + taken;
    state.hidden[i] = sigmoid(gates[3 * kSileroHidden + i]) * hyperbolic_tangent(state.cell[i]);
  }
}

float probability(const std::vector<float>& weight, float bias, const SileroState& state) {
  float sum = bias;
  for (size_t i = 0; i < kSileroHidden; ++i)
    sum += weight[i] * std::max(state.hidden[i], 0.0F);
  return sigmoid(sum);
}

} // namespace voxgate

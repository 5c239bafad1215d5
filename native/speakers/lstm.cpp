#include "speakers/lstm.h"

#include "exponential.h"
#include "simd_dispatch.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr size_t kHidden = Lstm::kHidden;
constexpr size_t kGates = 4 * kHidden;
constexpr size_t kStretch = 16; // frames whose gates are computed at once, to stay in a core's second cache
static_assert(Lstm::kWorkFloats == kStretch * kGates + kHidden);

// Near 0 the quick hyperbolic tangent loses digits, and the steps of an LSTM add that up; there it is a
// polynomial (Cephes, tanhf.c, https://www.netlib.org/cephes/).
inline float exact_tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3F;
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float near = p * z * x + x;
  const float far = hyperbolic_tangent(x);
  return std::fabs(x) < 0.625F ? near : far;
}

// Advances the state of one window. `gates` holds the sums of the input, forget, cell and output gates.
VOXGATE_VECTOR_CLONES
void advance(const float* __restrict gates, float* __restrict cell, float* __restrict out) {
  for (size_t i = 0; i < kHidden; ++i) {
    const float taken = sigmoid(gates[i]) * exact_tanh(gates[2 * kHidden + i]);
    cell[i] = sigmoid(gates[kHidden + i]) * cell[i] + taken;
    out[i] = sigmoid(gates[3 * kHidden + i]) * exact_tanh(cell[i]);
  }
}

std::vector<float> sum(std::vector<float> some, const std::vector<float>& others) {
  for (size_t i = 0; i < some.size(); ++i)
    some[i] += others[i];
  return some;
}

} // namespace

Lstm::Lstm(NetworkWeights& weights, const std::string& name, size_t inputs)
    : inputs_(inputs), input_(weights.take(name + ".input.weight", {kGates, static_cast<int64_t>(inputs)}),
                              sum(weights.take(name + ".input.bias", {kGates}),
                                  weights.take(name + ".recurrent.bias", {kGates})),
                              kGates),
      recurrent_(weights.take(name + ".recurrent.weight", {kGates, kHidden}), {}, kGates) {}

void Lstm::compute(const float* in, size_t frames, size_t windows, bool backward, float* work, float* out,
                   const CancelToken& cancel) const {
  constexpr size_t kOut = 2 * kHidden;
  float* const gates = work;
  float* const cells = work + kStretch * windows * kGates;
  std::fill_n(cells, windows * kHidden, 0.0F);
  for (size_t done = 0; done < frames; done += kStretch) {
    cancel.check();
    const size_t count = std::min(kStretch, frames - done);
    const size_t first = backward ? frames - done - count : done;
    input_.multiply({in + first * windows * inputs_, inputs_, inputs_}, count * windows, gates, kGates);
    for (size_t step = 0; step < count; ++step) {
      const size_t frame = backward ? first + count - 1 - step : first + step;
      float* const now = gates + (frame - first) * windows * kGates;
      float* const hidden = out + frame * windows * kOut;
      if (done + step > 0) {
        const float* before = backward ? hidden + windows * kOut : hidden - windows * kOut;
        recurrent_.add({before, kOut, kHidden}, windows, now, kGates);
      }
      for (size_t window = 0; window < windows; ++window)
        advance(now + window * kGates, cells + window * kHidden, hidden + window * kOut);
    }
  }
}

} // namespace voxgate

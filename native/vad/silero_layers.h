#pragma once

#include <array>
#include <cstddef>
#include <vector>

// The layers of Silero's network. The loops are written so that the compiler can vectorize them. A batch of
// windows goes through a layer together, so that its weights are read once. A window is computed in the same
// way at every place in a batch, so that the result does not depend on how a stream is cut into calls.

namespace voxgate {

inline constexpr size_t kSileroBatch = 16;   // windows
inline constexpr size_t kSileroHidden = 128; // values of the LSTM's state

// Holds `count` frames of `width` values for each window of a batch, between two frames of zeros, which pad
// the convolutions.
class SileroFrames {
 public:
  SileroFrames(size_t frames, size_t values)
      : count(frames), width(values), values_(kSileroBatch * (frames + 2) * values) {}

  // Frame 0 is the frame of zeros before the first. The frames of a window are contiguous.
  float* at(size_t window, size_t frame) { return &values_[(window * (count + 2) + frame) * width]; }
  const float* at(size_t window, size_t frame) const {
    return &values_[(window * (count + 2) + frame) * width];
  }

  const size_t count;
  const size_t width;

 private:
  std::vector<float> values_;
};

// The weights of a layer in panels. A panel is a group of outputs that are computed together, in two
// registers of AVX-512. The last panel is filled up with zeros.
struct SileroLayer {
  static constexpr size_t kPanel = 32;
  struct alignas(64) Panel {
    std::array<float, kPanel> lanes{};
  };

  // `weight` is [outputs][inputs][taps], for a convolution over frames of `inputs` values. An empty `bias`
  // means zeros.
  SileroLayer(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs, size_t taps);

  size_t depth;               // taps * inputs
  std::vector<Panel> weights; // [panel][tap][input]
  std::vector<Panel> bias;    // [panel]
};

struct SileroState {
  std::array<float, kSileroHidden> hidden{};
  std::array<float, kSileroHidden> cell{};
};

// Computes frame i of `out` from the frames of `in` that begin at first + i * stride, for the first `windows`
// windows and maybe some more. `out` must be as wide as the panels together.
void convolve(const SileroLayer& layer, const SileroFrames& in, size_t windows, size_t first, size_t stride,
              bool relu, SileroFrames& out);

// Computes the magnitudes of frames that hold the real parts and then as many imaginary parts.
void magnitudes(const SileroFrames& spectrum, size_t windows, SileroFrames& out);

// Advances the LSTM by one step. `input` holds what the window adds to the input, forget, cell and output
// gates.
void advance(const SileroLayer& recurrent, const float* input, SileroState& state);

// The probability of speech in the window that last advanced the state.
float probability(const std::vector<float>& weight, float bias, const SileroState& state);

} // namespace voxgate

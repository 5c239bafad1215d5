#pragma once

#include <array>
#include <cstddef>
#include <vector>

// What Silero's network is made of. The loops are written for the compiler to make vectors of, and a batch of
// windows goes through a layer together, so that its weights are fetched once. A window is computed in the
// same way wherever it lies in a batch, so that nothing depends on how a stream is cut into calls.

namespace voxgate {

inline constexpr size_t kSileroBatch = 16;   // windows
inline constexpr size_t kSileroHidden = 128; // values of the LSTM's state

// Of each window of a batch `count` frames of `width` values between two of zeros, which pad convolutions.
class SileroFrames {
 public:
  SileroFrames(size_t frames, size_t values)
      : count(frames), width(values), values_(kSileroBatch * (frames + 2) * values) {}

  // Frame 0 is the zeros before the first. One frame follows another.
  float* at(size_t window, size_t frame) { return &values_[(window * (count + 2) + frame) * width]; }
  const float* at(size_t window, size_t frame) const {
    return &values_[(window * (count + 2) + frame) * width];
  }

  const size_t count;
  const size_t width;

 private:
  std::vector<float> values_;
};

// Weights in panels: outputs that are computed together, two registers of AVX-512. The last one is filled up
// with zeros.
struct SileroLayer {
  static constexpr size_t kPanel = 32;
  struct alignas(64) Panel {
    std::array<float, kPanel> lanes{};
  };

  // `weight`: [outputs][inputs][taps], a convolution over frames of `inputs` values. No bias is one of zeros.
  SileroLayer(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs, size_t taps);

  size_t depth;               // taps * inputs
  std::vector<Panel> weights; // [panel][tap][input]
  std::vector<Panel> bias;    // [panel]
};

struct SileroState {
  std::array<float, kSileroHidden> hidden{};
  std::array<float, kSileroHidden> cell{};
};

// Frame i of `out` from the frames of `in` that begin with first + i * stride; as wide as the panels.
void convolve(const SileroLayer& layer, const SileroFrames& in, size_t first, size_t stride, bool relu,
              SileroFrames& out);

// Of real parts followed by as many imaginary ones.
void magnitudes(const SileroFrames& spectrum, SileroFrames& out);

// One step of the LSTM. `input`: what the window adds to its input, forget, cell and output gates.
void advance(const SileroLayer& recurrent, const float* input, SileroState& state);

// The output: of speech in the window that the state has just been advanced by.
float probability(const std::vector<float>& weight, float bias, const SileroState& state);

} // namespace voxgate

#include "vad/silero.h"

#include "vad/silero_layers.h"
#include "vad/silero_weights.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr size_t kWindow = 512;
constexpr size_t kHop = 128;     // samples between two frames of the spectrum
constexpr size_t kMirrored = 64; // samples on each side of a window
constexpr size_t kBins = 129;

} // namespace

// The network that `whisper_vad_build_graph` of whisper.cpp defines, which is Silero's own. Unlike
// whisper.cpp, it does not round the input of a convolution to half precision. Only the state passes from
// window to window.
struct SileroVad::Network {
  explicit Network(const SileroWeights& weights)
      : stft(weights.stft, {}, 2 * kBins, 2 * kHop),
        encoder{{weights.encoder[0].weight, weights.encoder[0].bias, 128, 3},
                {weights.encoder[1].weight, weights.encoder[1].bias, 64, 3},
                {weights.encoder[2].weight, weights.encoder[2].bias, 64, 3},
                {weights.encoder[3].weight, weights.encoder[3].bias, 128, 3}},
        input(weights.input.weight, weights.input.bias, 4 * kSileroHidden, 1),
        recurrent(weights.recurrent.weight, weights.recurrent.bias, 4 * kSileroHidden, 1),
        output(weights.output) {}

  // Copies a block into `samples`. The last window is padded with zeros. The windows after it keep the values
  // of an earlier batch, which does no harm.
  void place(std::span<const float> block) {
    for (size_t window = 0; window * kWindow < block.size(); ++window) {
      const auto rest = block.subspan(window * kWindow);
      float* begin = samples.at(window, 1) + kMirrored;
      float* end = begin + kWindow;
      std::fill(std::copy_n(rest.begin(), std::min(kWindow, rest.size()), begin), end, 0.0F);
      std::reverse_copy(begin + 1, begin + 1 + kMirrored, begin - kMirrored);
      std::reverse_copy(end - 1 - kMirrored, end - 1, end);
    }
  }

  // `block` holds at most one batch of windows.
  void probabilities(std::span<const float> block, std::span<float> out) {
    place(block);
    const size_t windows = out.size();
    convolve(stft, samples, windows, 1, 1, false, spectrum);
    magnitudes(spectrum, windows, magnitude);
    convolve(encoder[0], magnitude, windows, 0, 1, true, encoded[0]);
    convolve(encoder[1], encoded[0], windows, 0, 2, true, encoded[1]);
    convolve(encoder[2], encoded[1], windows, 0, 2, true, encoded[2]);
    convolve(encoder[3], encoded[2], windows, 0, 1, true, encoded[3]);
    convolve(input, encoded[3], windows, 1, 1, false, gates);
    for (size_t window = 0; window < out.size(); ++window) {
      advance(recurrent, gates.at(window, 1), state);
      out[window] = probability(output.weight, output.bias[0], state);
    }
  }

  const SileroLayer stft;
  const SileroLayer encoder[4];
  const SileroLayer input;
  const SileroLayer recurrent;
  const SileroWeights::Linear output;
  SileroState state;

  SileroFrames samples{(kWindow + 2 * kMirrored) / kHop, kHop};
  SileroFrames spectrum{4, 288}; // 2 * kBins, rounded up to whole panels
  SileroFrames magnitude{4, kBins};
  SileroFrames encoded[4]{{4, 128}, {2, 64}, {1, 64}, {1, 128}};
  SileroFrames gates{1, 4 * kSileroHidden};
};

SileroVad::SileroVad(const std::string& path)
    : network_(std::make_unique<Network>(read_silero_weights(path))) {}

SileroVad::~SileroVad() = default;

std::vector<float> SileroVad::probabilities(std::span<const float> samples, bool reset,
                                            const CancelToken& cancel) {
  cancel.check();
  if (reset)
    network_->state = {};
  std::vector<float> result((samples.size() + kWindow - 1) / kWindow);
  for (size_t begin = 0; begin < result.size(); begin += kSileroBatch) {
    cancel.check();
    const size_t count = std::min(kSileroBatch, result.size() - begin);
    const auto rest = samples.subspan(begin * kWindow);
    network_->probabilities(rest.first(std::min(count * kWindow, rest.size())),
                            std::span(result).subspan(begin, count));
  }
  return result;
}

std::vector<float> SileroVad::probabilities_apart(std::span<const float> samples, const CancelToken& cancel) {
  const SileroState kept = network_->state;
  auto result = probabilities(samples, true, cancel);
  network_->state = kept;
  return result;
}

} // namespace voxgate

#include "speakers/segmentation.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr size_t kSincTaps = 251;
constexpr size_t kSincStride = 10;
constexpr size_t kTaps = 5;
constexpr size_t kPool = 3;
constexpr std::array<size_t, 3> kChannels{80, 60, 60};
constexpr size_t kHidden = 128;
constexpr size_t kLayers = 4;
constexpr float kSlope = 0.01F;   // of the leaky ReLU
constexpr double kEpsilon = 1e-5; // of the normalizations
constexpr size_t kBlock = 1536;   // frames that are convolved before they are pooled; a multiple of kPool

constexpr std::array<size_t, 3> convolved_frames() {
  std::array<size_t, 3> result{(Segmentation::kWindow - kSincTaps) / kSincStride + 1};
  for (size_t layer = 1; layer < result.size(); ++layer)
    result[layer] = result[layer - 1] / kPool - kTaps + 1;
  return result;
}
constexpr auto kConvolved = convolved_frames();
static_assert(kConvolved[2] / kPool == Segmentation::kFrames && kBlock % kPool == 0);

float leaky(float x) {
  return x < 0 ? kSlope * x : x;
}

// The largest of each three frames. Incomplete threes at the end are left out.
void pool(const float* in, size_t frames, size_t channels, bool magnitude, float* out) {
  for (size_t frame = 0; frame < frames / kPool; ++frame)
    for (size_t channel = 0; channel < channels; ++channel) {
      float largest = magnitude ? 0 : -INFINITY;
      for (size_t i = 0; i < kPool; ++i) {
        const float value = in[(frame * kPool + i) * channels + channel];
        largest = std::max(largest, magnitude ? std::fabs(value) : value);
      }
      out[frame * channels + channel] = largest;
    }
}

// The functions of the standard library are exact near 0, where the quick ones lose digits. Steps add that
// up.
float exact_sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

// Advances the state of one window. `gates` holds the sums of the input, forget, cell and output gates.
void advance(const float* input, const float* recurrent, float* cell, float* hidden, float* out) {
  for (size_t i = 0; i < kHidden; ++i) {
    const auto gate = [&](size_t which) {
      return input[which * kHidden + i] + recurrent[which * kHidden + i];
    };
    cell[i] = exact_sigmoid(gate(1)) * cell[i] + exact_sigmoid(gate(0)) * std::tanh(gate(2));
    out[i] = hidden[i] = exact_sigmoid(gate(3)) * std::tanh(cell[i]);
  }
}

void log_softmax(float* values, size_t count) {
  const float largest = *std::max_element(values, values + count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(values[i] - largest));
  const auto shift = static_cast<float>(largest + std::log(sum));
  for (size_t i = 0; i < count; ++i)
    values[i] -= shift;
}

std::vector<float> sum(std::vector<float> some, const std::vector<float>& others) {
  for (size_t i = 0; i < some.size(); ++i)
    some[i] += others[i];
  return some;
}

Panels linear(SpeakerWeights& weights, const std::string& name, size_t outputs, size_t inputs) {
  const auto rows = static_cast<int64_t>(outputs);
  return {weights.take(name + ".weight", {rows, static_cast<int64_t>(inputs)}),
          weights.take(name + ".bias", {rows}), outputs};
}

} // namespace

Segmentation::Lstm::Lstm(SpeakerWeights& weights, const std::string& name, size_t inputs)
    : input(weights.take(name + ".input.weight", {4 * kHidden, static_cast<int64_t>(inputs)}),
            sum(weights.take(name + ".input.bias", {4 * kHidden}),
                weights.take(name + ".recurrent.bias", {4 * kHidden})),
            4 * kHidden),
      recurrent(weights.take(name + ".recurrent.weight", {4 * kHidden, kHidden}), {}, 4 * kHidden) {}

Segmentation::Segmentation(SpeakerWeights& weights)
    : wave_weight_(weights.take("segmentation.wave_norm.weight", {1})),
      wave_bias_(weights.take("segmentation.wave_norm.bias", {1})) {
  for (size_t layer = 0; layer < kChannels.size(); ++layer) {
    const auto name = "segmentation.conv." + std::to_string(layer);
    const auto channels = static_cast<int64_t>(kChannels[layer]);
    if (layer == 0) {
      convolutions_.emplace_back(weights.take(name + ".weight", {channels, kSincTaps}), std::vector<float>{},
                                 kChannels[layer]);
    } else {
      const auto inputs = static_cast<int64_t>(kChannels[layer - 1]);
      const auto weight = weights.take(name + ".weight", {channels, inputs, kTaps});
      convolutions_.emplace_back(taps_first(weight, kChannels[layer], kTaps),
                                 weights.take(name + ".bias", {channels}), kChannels[layer]);
    }
    const auto norm = "segmentation.norm." + std::to_string(layer);
    norms_.push_back({weights.take(norm + ".weight", {channels}), weights.take(norm + ".bias", {channels})});
    pooled_[layer].resize(kConvolved[layer] / kPool * kChannels[layer]);
  }
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const auto name = "segmentation.lstm." + std::to_string(layer);
    const size_t inputs = layer == 0 ? kChannels.back() : 2 * kHidden;
    lstms_.push_back({Lstm(weights, name + ".forward", inputs), Lstm(weights, name + ".backward", inputs)});
  }
  linears_.push_back(linear(weights, "segmentation.linear.0", kHidden, 2 * kHidden));
  linears_.push_back(linear(weights, "segmentation.linear.1", kHidden, kHidden));
  linears_.push_back(linear(weights, "segmentation.classifier", kClasses, kHidden));
  wave_.resize(kWindow);
  convolved_.resize(kBlock * kChannels[0]);
  frames_.resize(kTogether * kFrames * 2 * kHidden);
  next_.resize(frames_.size());
  gates_.resize(kTogether * kFrames * 4 * kHidden);
}

void Segmentation::Norm::apply(float* frames, size_t count) const {
  const size_t channels = weight.size();
  std::vector<double> sums(channels), squares(channels);
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t channel = 0; channel < channels; ++channel)
      sums[channel] += frames[frame * channels + channel];
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t channel = 0; channel < channels; ++channel) {
      const double distance = frames[frame * channels + channel] - sums[channel] / static_cast<double>(count);
      squares[channel] += distance * distance;
    }
  for (size_t channel = 0; channel < channels; ++channel) {
    const double mean = sums[channel] / static_cast<double>(count);
    const double factor =
        weight[channel] / std::sqrt(squares[channel] / static_cast<double>(count) + kEpsilon);
    for (size_t frame = 0; frame < count; ++frame) {
      float& value = frames[frame * channels + channel];
      value = leaky(static_cast<float>((value - mean) * factor + bias[channel]));
    }
  }
}

// From the samples of a window to its frames of kChannels.back() values.
void Segmentation::encode(std::span<const float> samples, float* frames, const CancelToken& cancel) {
  std::fill(std::copy(samples.begin(), samples.end(), wave_.begin()), wave_.end(), 0.0F);
  double mean = 0;
  for (const float sample : wave_)
    mean += sample / static_cast<double>(kWindow);
  double variance = 0;
  for (const float sample : wave_)
    variance += (sample - mean) * (sample - mean) / static_cast<double>(kWindow);
  const double factor = wave_weight_[0] / std::sqrt(variance + kEpsilon);
  for (float& sample : wave_)
    sample = static_cast<float>((sample - mean) * factor + wave_bias_[0]);

  const float* in = wave_.data();
  for (size_t layer = 0; layer < kChannels.size(); ++layer) {
    const size_t channels = kChannels[layer];
    const size_t stride = layer == 0 ? kSincStride : kChannels[layer - 1];
    const size_t width = layer == 0 ? kSincTaps : kTaps * stride;
    for (size_t first = 0; first < kConvolved[layer]; first += kBlock) {
      cancel.check();
      const size_t count = std::min(kBlock, kConvolved[layer] - first);
      convolutions_[layer].multiply({in + first * stride, stride, width}, count, convolved_.data(), channels);
      pool(convolved_.data(), count, channels, layer == 0, &pooled_[layer][first / kPool * channels]);
    }
    norms_[layer].apply(pooled_[layer].data(), kConvolved[layer] / kPool);
    in = pooled_[layer].data();
  }
  std::copy(pooled_[2].begin(), pooled_[2].end(), frames);
}

// From frames_ to one half of next_. All windows take a step together, so that the weights are read once.
void Segmentation::recur(const Lstm& lstm, size_t inputs, size_t windows, bool backward,
                         const CancelToken& cancel) {
  lstm.input.multiply({frames_.data(), inputs, inputs}, windows * kFrames, gates_.data(), 4 * kHidden);
  std::vector<float> hidden(windows * kHidden), cell(windows * kHidden), recurrent(windows * 4 * kHidden);
  for (size_t step = 0; step < kFrames; ++step) {
    if (step % 64 == 0)
      cancel.check();
    const size_t frame = backward ? kFrames - 1 - step : step;
    lstm.recurrent.multiply({hidden.data(), kHidden, kHidden}, windows, recurrent.data(), 4 * kHidden);
    for (size_t window = 0; window < windows; ++window) {
      const size_t at = window * kFrames + frame;
      advance(&gates_[at * 4 * kHidden], &recurrent[window * 4 * kHidden], &cell[window * kHidden],
              &hidden[window * kHidden], &next_[at * 2 * kHidden + (backward ? kHidden : 0)]);
    }
  }
}

void Segmentation::log_probabilities(std::span<const float> samples, size_t step, size_t windows, float* out,
                                     const CancelToken& cancel) {
  for (size_t window = 0; window < windows; ++window) {
    const auto rest = samples.subspan(std::min(window * step, samples.size()));
    encode(rest.first(std::min(kWindow, rest.size())), &frames_[window * kFrames * kChannels.back()], cancel);
  }
  size_t inputs = kChannels.back();
  for (const auto& directions : lstms_) {
    recur(directions[0], inputs, windows, false, cancel);
    recur(directions[1], inputs, windows, true, cancel);
    frames_.swap(next_);
    inputs = 2 * kHidden;
  }
  const size_t rows = windows * kFrames;
  for (size_t layer = 0; layer < 2; ++layer) {
    linears_[layer].multiply({frames_.data(), inputs, inputs}, rows, next_.data(), kHidden);
    inputs = kHidden;
    for (size_t i = 0; i < rows * kHidden; ++i)
      frames_[i] = leaky(next_[i]);
  }
  linears_[2].multiply({frames_.data(), kHidden, kHidden}, rows, out, kClasses);
  for (size_t row = 0; row < rows; ++row)
    log_softmax(out + row * kClasses, kClasses);
}

} // namespace voxgate

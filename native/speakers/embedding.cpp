#include "speakers/embedding.h"

#include "exponential.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr size_t kMels = 80;
constexpr size_t kHead = 32;  // channels of the pictures
constexpr size_t kBands = 10; // frequencies that are left after the head
constexpr size_t kWidth = 128;
constexpr size_t kGrowth = 32; // channels that a layer adds
constexpr size_t kGate = 64;
constexpr size_t kTdnnTaps = 5;
constexpr size_t kTdnnStride = 2;
constexpr size_t kLocalTaps = 3;
constexpr size_t kSegment = 100; // frames that share a gate
constexpr std::array<size_t, 3> kLayers{12, 24, 16};
constexpr std::array<size_t, 3> kDilations{1, 2, 2};
constexpr float kLoneDeviation = 0.01F; // stands for the deviation of a single frame
constexpr FbankRecipe kRecipe{FbankWindow::povey, 1};

int64_t extent(size_t value) {
  return static_cast<int64_t>(value);
}

void relu(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = std::max(values[i], 0.0F);
}

// The 3 x 3 taps come before the inputs, as the pictures have them.
Panels panels(SpeakerWeights& weights, const std::string& name, const std::vector<int64_t>& shape,
              bool has_bias) {
  size_t taps = 1;
  for (size_t i = 2; i < shape.size(); ++i)
    taps *= static_cast<size_t>(shape[i]);
  const auto outputs = static_cast<size_t>(shape[0]);
  const auto weight = taps_first(weights.take(name + ".weight", shape), outputs, taps);
  return {weight, has_bias ? weights.take(name + ".bias", {shape[0]}) : std::vector<float>{}, outputs};
}

// max(x * factor + summand, 0) of the first channels of each frame.
std::vector<float> normalized(const std::vector<float>& factor, const std::vector<float>& summand,
                              const std::vector<float>& features, size_t stride, size_t frames) {
  const size_t channels = factor.size();
  std::vector<float> result(frames * channels);
  for (size_t frame = 0; frame < frames; ++frame)
    for (size_t channel = 0; channel < channels; ++channel)
      result[frame * channels + channel] =
          std::max(features[frame * stride + channel] * factor[channel] + summand[channel], 0.0F);
  return result;
}

// Adds the mean of frames, each of kWidth values, to `sums`.
void add_mean(const float* frames, size_t count, std::array<float, kWidth>& sums) {
  std::array<double, kWidth> total{};
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t channel = 0; channel < kWidth; ++channel)
      total[channel] += frames[frame * kWidth + channel];
  for (size_t channel = 0; channel < kWidth; ++channel)
    sums[channel] += static_cast<float>(total[channel] / static_cast<double>(count));
}

// The weighted means of all channels, then their standard deviations without bias
// (https://en.wikipedia.org/wiki/Weighted_arithmetic_mean#Reliability_weights).
std::vector<float> statistics(const std::vector<float>& features, size_t channels, size_t frames,
                              std::span<const float> mask) {
  std::vector<double> weights(frames, 1);
  for (size_t frame = 0; !mask.empty() && frame < frames; ++frame)
    weights[frame] = std::max(mask[frame * mask.size() / frames], 0.0F);
  double total = 0;
  double squares = 0;
  for (const double weight : weights) {
    total += weight;
    squares += weight * weight;
  }
  const double freedom = total > 0 ? total - squares / total : 0;
  std::vector<float> result(2 * channels);
  for (size_t channel = 0; channel < channels && total > 0; ++channel) {
    double mean = 0;
    for (size_t frame = 0; frame < frames; ++frame)
      mean += weights[frame] * features[frame * channels + channel] / total;
    double deviation = 0;
    for (size_t frame = 0; frame < frames; ++frame) {
      const double distance = features[frame * channels + channel] - mean;
      deviation += weights[frame] * distance * distance;
    }
    result[channel] = static_cast<float>(mean);
    result[channels + channel] =
        freedom > 1e-9 ? static_cast<float>(std::sqrt(deviation / freedom)) : kLoneDeviation;
  }
  return result;
}

} // namespace

struct Embedding::Picture {
  Picture(size_t heights, size_t widths, size_t depth)
      : bands(heights), frames(widths), channels(depth), values((heights + 2) * (widths + 2) * depth) {}

  // Band 0 and frame 0 are the border before the first.
  const float* at(size_t band, size_t frame) const {
    return &values[(band * (frames + 2) + frame) * channels];
  }
  float* at(size_t band, size_t frame) { return &values[(band * (frames + 2) + frame) * channels]; }

  size_t bands, frames, channels;
  std::vector<float> values;
};

Embedding::Convolution Embedding::convolution(SpeakerWeights& weights, const std::string& name, size_t inputs,
                                              size_t taps, size_t stride) {
  return {panels(weights, "embedding.head." + name,
                 {extent(kHead), extent(inputs), extent(taps), extent(taps)}, true),
          taps, stride};
}

Embedding::Norm Embedding::norm(SpeakerWeights& weights, const std::string& name, size_t channels) {
  return {weights.take(name + ".norm.factor", {extent(channels)}),
          weights.take(name + ".norm.summand", {extent(channels)})};
}

Embedding::Layer Embedding::layer(SpeakerWeights& weights, const std::string& name, size_t channels) {
  return {norm(weights, name, channels),
          panels(weights, name + ".bottleneck", {extent(kWidth), extent(channels), 1}, true),
          panels(weights, name + ".local", {extent(kGrowth), extent(kWidth), extent(kLocalTaps)}, false),
          panels(weights, name + ".context", {extent(kGate), extent(kWidth), 1}, true),
          panels(weights, name + ".gate", {extent(kGrowth), extent(kGate), 1}, true)};
}

Embedding::Embedding(SpeakerWeights& weights) : fbank_(kMels, kRecipe) {
  ends_.push_back(convolution(weights, "first", 1, 3, 1));
  for (const std::string group : {"1.", "2."})
    for (const std::string index : {"0", "1"}) {
      const bool first = index == "0";
      const auto name = group + index;
      Residual block{convolution(weights, name + ".conv1", kHead, 3, first ? 2 : 1),
                     convolution(weights, name + ".conv2", kHead, 3, 1),
                     {}};
      if (first)
        block.shortcut.push_back(convolution(weights, name + ".shortcut", kHead, 1, 2));
      residuals_.push_back(std::move(block));
    }
  ends_.push_back(convolution(weights, "last", kHead, 3, 2));
  const auto tdnn_inputs = extent(kHead * kBands);
  tdnn_.push_back(panels(weights, "embedding.tdnn", {extent(kWidth), tdnn_inputs, extent(kTdnnTaps)}, true));
  size_t channels = kWidth;
  for (size_t i = 0; i < kLayers.size(); ++i) {
    std::vector<Layer> layers;
    for (size_t j = 0; j < kLayers[i]; ++j, channels += kGrowth)
      layers.push_back(
          layer(weights, "embedding.block." + std::to_string(i) + "." + std::to_string(j), channels));
    const auto name = "embedding.transit." + std::to_string(i);
    const bool last = i + 1 == kLayers.size();
    blocks_.push_back({std::move(layers), kDilations[i], norm(weights, name, channels),
                       panels(weights, name, {extent(channels / 2), extent(channels), 1}, last)});
    channels /= 2;
  }
  dense_.push_back(panels(weights, "embedding.dense", {extent(kSize), extent(2 * channels), 1}, true));
}

Embedding::Picture Embedding::convolve(const Convolution& convolution, const Picture& in) {
  const auto [panels, taps, stride] = convolution;
  const size_t border = taps == 1 ? 1 : 0; // a single tap looks at the middle
  Picture out((in.bands - 1) / stride + 1, in.frames, panels.outputs());
  for (size_t band = 0; band < out.bands; ++band)
    panels.multiply({in.at(band * stride + border, border), in.channels, taps * in.channels, taps,
                     (in.frames + 2) * in.channels},
                    in.frames, out.at(band + 1, 1), out.channels);
  return out;
}

Embedding::Picture Embedding::residual(const Residual& block, const Picture& in) {
  Picture between = convolve(block.first, in);
  relu(between.values.data(), between.values.size());
  Picture out = convolve(block.second, between);
  const Picture& beside = block.shortcut.empty() ? in : between = convolve(block.shortcut[0], in);
  for (size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = std::max(out.values[i] + beside.values[i], 0.0F);
  return out;
}

// Frames of kHead * kBands values, between two frames of zeros at both ends.
std::vector<float> Embedding::head(std::span<const float> samples, size_t& frames,
                                   const CancelToken& cancel) const {
  auto rows = fbank_(samples);
  frames = rows.size() / kMels;
  Picture picture(kMels, frames, 1);
  for (size_t mel = 0; mel < kMels; ++mel) {
    double mean = 0;
    for (size_t frame = 0; frame < frames; ++frame)
      mean += rows[frame * kMels + mel] / static_cast<double>(frames);
    for (size_t frame = 0; frame < frames; ++frame)
      *picture.at(mel + 1, frame + 1) = static_cast<float>(rows[frame * kMels + mel] - mean);
  }
  picture = convolve(ends_[0], picture);
  relu(picture.values.data(), picture.values.size());
  for (const auto& block : residuals_) {
    cancel.check();
    picture = residual(block, picture);
  }
  picture = convolve(ends_[1], picture);
  constexpr size_t kBorder = kTdnnTaps / 2;
  std::vector<float> result((frames + 2 * kBorder) * kHead * kBands);
  for (size_t frame = 0; frame < frames; ++frame)
    for (size_t band = 0; band < kBands; ++band)
      for (size_t channel = 0; channel < kHead; ++channel)
        result[(frame + kBorder) * kHead * kBands + channel * kBands + band] =
            std::max(picture.at(band + 1, frame + 1)[channel], 0.0F);
  return result;
}

// Writes kGrowth channels after the first `channels` of each frame.
void Embedding::extend(const Layer& layer, size_t dilation, size_t frames, size_t channels, size_t stride,
                       std::vector<float>& features) {
  const auto input = normalized(layer.norm.factor, layer.norm.summand, features, stride, frames);
  std::vector<float> narrow((frames + 2 * dilation) * kWidth);
  float* first = &narrow[dilation * kWidth];
  layer.bottleneck.multiply({input.data(), channels, channels}, frames, first, kWidth);
  relu(first, frames * kWidth);
  float* target = &features[channels];
  layer.local.multiply({narrow.data(), kWidth, kWidth, kLocalTaps, dilation * kWidth}, frames, target,
                       stride);
  std::array<float, kWidth> whole{};
  add_mean(first, frames, whole);
  for (size_t begin = 0; begin < frames; begin += kSegment) {
    const size_t count = std::min(kSegment, frames - begin);
    auto context = whole;
    add_mean(first + begin * kWidth, count, context);
    std::array<float, kGate> squeezed{};
    std::array<float, kGrowth> gate{};
    layer.context.multiply({context.data(), kWidth, kWidth}, 1, squeezed.data(), kGate);
    relu(squeezed.data(), kGate);
    layer.gate.multiply({squeezed.data(), kGate, kGate}, 1, gate.data(), kGrowth);
    for (size_t frame = begin; frame < begin + count; ++frame)
      for (size_t channel = 0; channel < kGrowth; ++channel)
        target[frame * stride + channel] *= sigmoid(gate[channel]);
  }
}

std::vector<float> Embedding::features(std::span<const float> samples, size_t& frames,
                                       const CancelToken& cancel) const {
  const auto input = head(samples, frames, cancel);
  constexpr size_t kInputs = kHead * kBands;
  frames = (frames - 1) / kTdnnStride + 1;
  size_t channels = kWidth;
  size_t stride = channels + kLayers[0] * kGrowth;
  std::vector<float> features(frames * stride);
  tdnn_[0].multiply({input.data(), kTdnnStride * kInputs, kTdnnTaps * kInputs}, frames, features.data(),
                    stride);
  for (size_t frame = 0; frame < frames; ++frame)
    relu(&features[frame * stride], kWidth);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (const auto& layer : blocks_[i].layers) {
      cancel.check();
      extend(layer, blocks_[i].dilation, frames, channels, stride, features);
      channels += kGrowth;
    }
    const auto in = normalized(blocks_[i].norm.factor, blocks_[i].norm.summand, features, stride, frames);
    const size_t growth = i + 1 < blocks_.size() ? kLayers[i + 1] * kGrowth : 0;
    stride = channels / 2 + growth;
    features.assign(frames * stride, 0);
    blocks_[i].transit.multiply({in.data(), channels, channels}, frames, features.data(), stride);
    channels /= 2;
  }
  relu(features.data(), features.size());
  return features;
}

std::vector<float> Embedding::embeddings(std::span<const float> samples,
                                         std::span<const std::span<const float>> masks,
                                         const CancelToken& cancel) const {
  cancel.check();
  size_t frames = 0;
  const auto seen = features(samples, frames, cancel);
  const size_t channels = seen.size() / frames;
  const size_t count = std::max<size_t>(masks.size(), 1);
  std::vector<float> result(count * kSize);
  for (size_t i = 0; i < count; ++i) {
    const auto pooled =
        statistics(seen, channels, frames, masks.empty() ? std::span<const float>{} : masks[i]);
    dense_[0].multiply({pooled.data(), pooled.size(), pooled.size()}, 1, &result[i * kSize], kSize);
  }
  return result;
}

} // namespace voxgate

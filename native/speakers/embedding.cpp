#include "speakers/embedding.h"

#include "exponential.h"
#include "layers/linear_layer.h"
#include "simd_dispatch.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr size_t kWidth = 128;
constexpr size_t kGrowth = 32; // channels that a layer adds
constexpr size_t kGate = 64;
constexpr size_t kTdnnTaps = 5;
constexpr size_t kTdnnStride = 2;
constexpr size_t kLocalTaps = 3;
constexpr size_t kSegment = 100; // frames that share a gate
constexpr size_t kRows = 120;    // frames of which a thread computes a layer; a multiple of 12
constexpr std::array<size_t, 3> kLayers{12, 24, 16};
constexpr std::array<size_t, 3> kDilations{1, 2, 2};
constexpr size_t kSingle = 1; // the width of pieces, of layers that are computed of one row and not rounded
constexpr float kLoneDeviation = 0.01F; // stands for the deviation of a single frame

// max(x * factor + summand, 0) of the channels of a frame.
VOXGATE_VECTOR_CLONES
void normalize(const float* in, const float* factor, const float* summand, size_t channels, float* out) {
  for (size_t channel = 0; channel < channels; ++channel)
    out[channel] = std::max(in[channel] * factor[channel] + summand[channel], 0.0F);
}

// Adds frames, each of kWidth values.
VOXGATE_VECTOR_CLONES
void add_frames(const float* frames, size_t count, double* sums) {
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t channel = 0; channel < kWidth; ++channel)
      sums[channel] += frames[frame * kWidth + channel];
}

std::array<float, kWidth> mean(const float* frames, size_t count) {
  std::array<double, kWidth> sums{};
  add_frames(frames, count, sums.data());
  std::array<float, kWidth> result{};
  for (size_t channel = 0; channel < kWidth; ++channel)
    result[channel] = static_cast<float>(sums[channel] / static_cast<double>(count));
  return result;
}

// Adds weight * value, or weight * (value - mean)^2.
VOXGATE_VECTOR_CLONES
void add_weighted(const float* values, double weight, size_t count, double* sums) {
  for (size_t i = 0; i < count; ++i)
    sums[i] += weight * values[i];
}
VOXGATE_VECTOR_CLONES
void add_deviation(const float* values, double weight, const double* means, size_t count, double* sums) {
  for (size_t i = 0; i < count; ++i) {
    const double distance = values[i] - means[i];
    sums[i] += weight * distance * distance;
  }
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
  std::vector<float> result(2 * channels);
  if (!(total > 0))
    return result;
  std::vector<double> means(channels), deviations(channels);
  // Most masks take a few of the frames.
  for (size_t frame = 0; frame < frames; ++frame)
    if (weights[frame] > 0)
      add_weighted(&features[frame * channels], weights[frame] / total, channels, means.data());
  for (size_t frame = 0; frame < frames; ++frame)
    if (weights[frame] > 0)
      add_deviation(&features[frame * channels], weights[frame], means.data(), channels, deviations.data());
  const double freedom = total - squares / total;
  for (size_t channel = 0; channel < channels; ++channel) {
    result[channel] = static_cast<float>(means[channel]);
    result[channels + channel] =
        freedom > 1e-9 ? static_cast<float>(std::sqrt(deviations[channel] / freedom)) : kLoneDeviation;
  }
  return result;
}

} // namespace

// What the layers after the head add to, and the memory that they work in.
struct Embedding::Features {
  size_t frames, channels, stride; // of `values`: the channels so far, and room for those to come
  std::vector<float> values;
  std::vector<float> normalized, narrow;
};

Embedding::Norm Embedding::norm(NetworkWeights& weights, const std::string& name, size_t channels) {
  return {weights.take(name + ".norm.factor", {extent(channels)}),
          weights.take(name + ".norm.summand", {extent(channels)})};
}

Embedding::Layer Embedding::layer(NetworkWeights& weights, const std::string& name, size_t channels) {
  return {norm(weights, name, channels),
          LinearLayer(weights, name + ".bottleneck", {extent(kWidth), extent(channels), 1}, true, channels),
          LinearLayer(weights, name + ".local", {extent(kGrowth), extent(kWidth), extent(kLocalTaps)}, false,
                      kWidth),
          LinearLayer(weights, name + ".context", {extent(kGate), extent(kWidth), 1}, true, kSingle),
          LinearLayer(weights, name + ".gate", {extent(kGrowth), extent(kGate), 1}, true, kSingle)};
}

Embedding::Embedding(NetworkWeights& weights) : head_(weights) {
  constexpr size_t kInputs = EmbeddingHead::kValues;
  tdnn_.emplace_back(weights, "embedding.tdnn",
                     std::vector{extent(kWidth), extent(kInputs), extent(kTdnnTaps)}, true, kInputs);
  size_t channels = kWidth;
  for (size_t i = 0; i < kLayers.size(); ++i) {
    std::vector<Layer> layers;
    for (size_t j = 0; j < kLayers[i]; ++j, channels += kGrowth)
      layers.push_back(
          layer(weights, "embedding.block." + std::to_string(i) + "." + std::to_string(j), channels));
    const auto name = "embedding.transit." + std::to_string(i);
    const bool last = i + 1 == kLayers.size();
    blocks_.push_back(
        {std::move(layers), kDilations[i], norm(weights, name, channels),
         LinearLayer(weights, name, {extent(channels / 2), extent(channels), 1}, last, channels)});
    channels /= 2;
  }
  dense_.emplace_back(weights, "embedding.dense", std::vector{extent(kSize), extent(2 * channels), extent(1)},
                      true, kSingle);
}

// Writes kGrowth channels after those that each frame has.
void Embedding::extend(const Layer& layer, size_t dilation, Features& features, const Team& team,
                       const CancelToken& cancel) {
  const size_t frames = features.frames;
  const size_t channels = features.channels;
  const size_t stride = features.stride;
  float* const narrow = &features.narrow[dilation * kWidth];
  std::fill_n(features.narrow.data(), dilation * kWidth, 0.0F);
  std::fill_n(narrow + frames * kWidth, dilation * kWidth, 0.0F);
  team.share((frames + kRows - 1) / kRows, [&](size_t job) {
    cancel.check();
    const size_t begin = job * kRows;
    const size_t count = std::min(kRows, frames - begin);
    float* const input = &features.normalized[begin * channels];
    for (size_t i = 0; i < count; ++i)
      normalize(&features.values[(begin + i) * stride], layer.norm.factor.data(), layer.norm.summand.data(),
                channels, input + i * channels);
    layer.bottleneck.multiply({input, channels, channels}, count, narrow + begin * kWidth, kWidth);
    relu(narrow + begin * kWidth, count * kWidth);
  });
  const auto whole = mean(narrow, frames);
  team.share((frames + kSegment - 1) / kSegment, [&](size_t segment) {
    const size_t begin = segment * kSegment;
    const size_t count = std::min(kSegment, frames - begin);
    auto context = mean(narrow + begin * kWidth, count);
    for (size_t channel = 0; channel < kWidth; ++channel)
      context[channel] += whole[channel];
    std::array<float, kGate> squeezed{};
    std::array<float, kGrowth> gate{};
    layer.context.multiply({context.data(), kWidth, kWidth}, 1, squeezed.data(), kGate);
    relu(squeezed.data(), kGate);
    layer.gate.multiply({squeezed.data(), kGate, kGate}, 1, gate.data(), kGrowth);
    float* const target = &features.values[begin * stride + channels];
    layer.local.multiply({&features.narrow[begin * kWidth], kWidth, kWidth, kLocalTaps, dilation * kWidth},
                         count, target, stride);
    for (float& value : gate)
      value = sigmoid(value);
    for (size_t frame = 0; frame < count; ++frame)
      for (size_t channel = 0; channel < kGrowth; ++channel)
        target[frame * stride + channel] *= gate[channel];
  });
  features.channels += kGrowth;
}

// Frames of the channels that are pooled.
std::vector<float> Embedding::features(std::span<const float> samples, size_t& frames, const Team& team,
                                       const CancelToken& cancel) const {
  constexpr size_t kInputs = EmbeddingHead::kValues;
  auto input = head_.compute(samples, kTdnnTaps / 2, team, cancel);
  frames = input.size() / kInputs - kTdnnTaps / 2 * 2;
  frames = (frames - 1) / kTdnnStride + 1;
  Features features{frames, kWidth, kWidth + kLayers[0] * kGrowth, {}, {}, {}};
  features.values.resize(frames * features.stride);
  features.narrow.resize((frames + 2 * *std::ranges::max_element(kDilations)) * kWidth);
  tdnn_[0].multiply({input.data(), kTdnnStride * kInputs, kTdnnTaps * kInputs}, frames,
                    features.values.data(), features.stride);
  for (size_t frame = 0; frame < frames; ++frame)
    relu(&features.values[frame * features.stride], kWidth);
  features.normalized.swap(input); // its memory
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto& block = blocks_[i];
    features.normalized.resize(frames * features.stride);
    for (const auto& layer : block.layers)
      extend(layer, block.dilation, features, team, cancel);
    const size_t channels = features.channels;
    for (size_t frame = 0; frame < frames; ++frame)
      normalize(&features.values[frame * features.stride], block.norm.factor.data(),
                block.norm.summand.data(), channels, &features.normalized[frame * channels]);
    const size_t growth = i + 1 < blocks_.size() ? kLayers[i + 1] * kGrowth : 0;
    features.channels = channels / 2;
    features.stride = features.channels + growth;
    features.values.resize(frames * features.stride);
    team.share((frames + kRows - 1) / kRows, [&](size_t job) {
      const size_t begin = job * kRows;
      block.transit.multiply({&features.normalized[begin * channels], channels, channels},
                             std::min(kRows, frames - begin), &features.values[begin * features.stride],
                             features.stride);
    });
  }
  relu(features.values.data(), features.values.size());
  return std::move(features.values);
}

std::vector<float> Embedding::embeddings(std::span<const float> samples,
                                         std::span<const std::span<const float>> masks, const Team& team,
                                         const CancelToken& cancel) const {
  cancel.check();
  size_t frames = 0;
  const auto seen = features(samples, frames, team, cancel);
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

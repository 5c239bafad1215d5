#include "speakers/segmentation.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr size_t kHidden = Lstm::kHidden;
constexpr size_t kLayers = 4;
constexpr float kSlope = 0.01F; // of the leaky ReLU
constexpr size_t kGroup = 12;   // windows, whose steps are computed in registers (layers/panels.cpp)
constexpr size_t kBatch = 24;   // windows in memory
constexpr size_t kStretch = 31; // frames that go through the last layers together; 19 times that are all
static_assert(Segmentation::kFrames % kStretch == 0);

void log_softmax(float* values, size_t count) {
  const float largest = *std::max_element(values, values + count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(values[i] - largest));
  const auto shift = static_cast<float>(largest + std::log(sum));
  for (size_t i = 0; i < count; ++i)
    values[i] -= shift;
}

void leaky(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = values[i] < 0 ? kSlope * values[i] : values[i];
}

Panels linear(NetworkWeights& weights, const std::string& name, size_t outputs, size_t inputs) {
  const auto rows = static_cast<int64_t>(outputs);
  return {weights.take(name + ".weight", {rows, static_cast<int64_t>(inputs)}),
          weights.take(name + ".bias", {rows}), outputs};
}

} // namespace

Segmentation::Segmentation(NetworkWeights& weights) : encoder_(weights) {
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const auto name = "segmentation.lstm." + std::to_string(layer);
    const size_t inputs = layer == 0 ? WindowEncoder::kChannels : 2 * kHidden;
    lstms_.push_back({Lstm(weights, name + ".forward", inputs), Lstm(weights, name + ".backward", inputs)});
  }
  linears_.push_back(linear(weights, "segmentation.linear.0", kHidden, 2 * kHidden));
  linears_.push_back(linear(weights, "segmentation.linear.1", kHidden, kHidden));
  linears_.push_back(linear(weights, "segmentation.classifier", kClasses, kHidden));
}

void Segmentation::log_probabilities(std::span<const float> samples, size_t step, size_t windows, float* out,
                                     const Team& team, const CancelToken& cancel) {
  encoder_.start(samples, step);
  // Two threads compute the directions of a group. With more there are more groups.
  const size_t most = std::clamp<size_t>((static_cast<size_t>(team.threads()) + 1) / 2, 1, kBatch);
  for (size_t done = 0; done < windows;) {
    const size_t batch = std::min({windows - done, kBatch, kGroup * most});
    const size_t size = (batch + most - 1) / most;
    groups_.resize((batch + size - 1) / size);
    for (size_t i = 0; i < groups_.size(); ++i) {
      auto& group = groups_[i];
      group.windows = std::min(size, batch - i * size);
      group.frames.resize(kFrames * group.windows * 2 * kHidden);
      group.next.resize(group.frames.size());
      for (auto& work : group.work)
        work.resize(group.windows * Lstm::kWorkFloats);
    }
    const auto frame = [&](size_t at, size_t window) {
      auto& group = groups_[window / size];
      return &group.frames[(at * group.windows + window % size) * WindowEncoder::kChannels];
    };
    encoder_.encode(batch, team, frame, cancel);
    for (const auto& directions : lstms_) {
      team.share(2 * groups_.size(), [&](size_t job) {
        auto& group = groups_[job / 2];
        const bool backward = job % 2 == 1;
        directions[job % 2].compute(group.frames.data(), kFrames, group.windows, backward,
                                    group.work[job % 2].data(), &group.next[backward ? kHidden : 0], cancel);
      });
      for (auto& group : groups_)
        group.frames.swap(group.next);
    }
    constexpr size_t kStretches = kFrames / kStretch;
    team.share(groups_.size() * kStretches, [&](size_t job) {
      const size_t group = job / kStretches;
      classify(groups_[group], job % kStretches * kStretch, out + (done + group * size) * kFrames * kClasses);
    });
    done += batch;
  }
}

// The last layers, of kStretch frames. `next` holds what comes between them.
void Segmentation::classify(Group& group, size_t first, float* out) const {
  const size_t rows = kStretch * group.windows;
  const float* in = &group.frames[first * group.windows * 2 * kHidden];
  float* between = &group.next[first * group.windows * 2 * kHidden];
  float* after = between + rows * kHidden;
  linears_[0].multiply({in, 2 * kHidden, 2 * kHidden}, rows, between, kHidden);
  leaky(between, rows * kHidden);
  linears_[1].multiply({between, kHidden, kHidden}, rows, after, kHidden);
  leaky(after, rows * kHidden);
  linears_[2].multiply({after, kHidden, kHidden}, rows, between, kClasses);
  for (size_t row = 0; row < rows; ++row) {
    float* values = between + row * kClasses;
    log_softmax(values, kClasses);
    const size_t frame = first + row / group.windows;
    std::copy_n(values, kClasses, out + (row % group.windows * kFrames + frame) * kClasses);
  }
}

} // namespace voxgate

#include "speakers/window_encoder.h"

#include "simd_dispatch.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr size_t kTaps = 251; // of a band-pass filter
constexpr size_t kStride = 10;
constexpr size_t kConvolutionTaps = 5;
constexpr size_t kPool = 3;
constexpr std::array<size_t, 3> kWidths{80, 60, WindowEncoder::kChannels};
constexpr float kSlope = 0.01F;    // of the leaky ReLU
constexpr double kEpsilon = 1e-5;  // of the normalizations
constexpr size_t kBlock = 384;     // frames that are convolved before they are pooled; a multiple of kPool
constexpr float kTiniest = 1e-30F; // less is 0, because products that are no normal numbers take long
constexpr size_t kTogether = 16;   // windows that are encoded at the same time

constexpr std::array<size_t, 3> convolved_frames() {
  std::array<size_t, 3> result{(WindowEncoder::kWindow - kTaps) / kStride + 1};
  for (size_t layer = 1; layer < result.size(); ++layer)
    result[layer] = result[layer - 1] / kPool - kConvolutionTaps + 1;
  return result;
}
constexpr auto kConvolved = convolved_frames();
static_assert(kConvolved[2] / kPool == WindowEncoder::kFrames && kBlock % kPool == 0);

struct Moments {
  double mean, variance;
};

// Sums in many lanes, so that none waits for the one before.
VOXGATE_VECTOR_CLONES
double sum_of_squares(const float* values, size_t count, double mean, bool squared) {
  constexpr size_t kLanes = 32;
  double sums[kLanes] = {};
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double distance = values[i + lane] - mean;
      sums[lane] += squared ? distance * distance : distance;
    }
  double total = 0;
  for (size_t i = whole; i < count; ++i) {
    const double distance = values[i] - mean;
    total += squared ? distance * distance : distance;
  }
  for (const double sum : sums)
    total += sum;
  return total;
}

// Computes the mean and variance of a window that begins with these samples and is silent after them.
Moments moments(std::span<const float> samples) {
  constexpr auto kCount = static_cast<double>(WindowEncoder::kWindow);
  const double mean = sum_of_squares(samples.data(), samples.size(), 0, false) / kCount;
  const double rest = kCount - static_cast<double>(samples.size());
  const double squares = sum_of_squares(samples.data(), samples.size(), mean, true) + rest * mean * mean;
  return {mean, squares / kCount};
}

// The largest magnitude of factor * value + summand over three frames.
VOXGATE_VECTOR_CLONES
void pool_magnitudes(const float* first, const float* second, const float* third, float factor,
                     const float* summands, float* out) {
  for (size_t i = 0; i < kWidths[0]; ++i) {
    const float one = std::fabs(first[i] * factor + summands[i]);
    const float two = std::fabs(second[i] * factor + summands[i]);
    const float three = std::fabs(third[i] * factor + summands[i]);
    out[i] = std::max(one, std::max(two, three));
  }
}

// The largest of each three frames. Incomplete threes at the end are left out.
VOXGATE_VECTOR_CLONES
void pool(const float* in, size_t frames, size_t channels, float* out) {
  for (size_t frame = 0; frame < frames / kPool; ++frame, in += kPool * channels, out += channels)
    for (size_t i = 0; i < channels; ++i)
      out[i] = std::max(in[i], std::max(in[channels + i], in[2 * channels + i]));
}

// Gives each channel of frames the mean 0 and the variance 1, then the trained ones, and ends with a leaky
// ReLU.
VOXGATE_VECTOR_CLONES
void normalize(const float* weight, const float* bias, size_t channels, float* frames, size_t count) {
  double means[kWidths[0]] = {}, squares[kWidths[0]] = {};
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t i = 0; i < channels; ++i)
      means[i] += frames[frame * channels + i];
  for (size_t i = 0; i < channels; ++i)
    means[i] /= static_cast<double>(count);
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t i = 0; i < channels; ++i) {
      const double distance = frames[frame * channels + i] - means[i];
      squares[i] += distance * distance;
    }
  for (size_t i = 0; i < channels; ++i)
    squares[i] = weight[i] / std::sqrt(squares[i] / static_cast<double>(count) + kEpsilon);
  for (size_t frame = 0; frame < count; ++frame)
    for (size_t i = 0; i < channels; ++i) {
      float& value = frames[frame * channels + i];
      const auto normal = static_cast<float>((value - means[i]) * squares[i] + bias[i]);
      value = normal < 0 ? kSlope * normal : normal;
    }
}

} // namespace

WindowEncoder::WindowEncoder(NetworkWeights& weights)
    : wave_weight_(weights.take("segmentation.wave_norm.weight", {1})),
      wave_bias_(weights.take("segmentation.wave_norm.bias", {1})) {
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const auto name = "segmentation.conv." + std::to_string(layer);
    const auto channels = static_cast<int64_t>(kWidths[layer]);
    if (layer == 0) {
      const auto filters = weights.take(name + ".weight", {channels, kTaps});
      for (size_t i = 0; i < kWidths[0]; ++i)
        filter_sums_.push_back(static_cast<float>(sum_of_squares(&filters[i * kTaps], kTaps, 0, false)));
      convolutions_.emplace_back(filters, std::vector<float>{}, kWidths[0]);
    } else {
      const auto inputs = static_cast<int64_t>(kWidths[layer - 1]);
      const auto weight = weights.take(name + ".weight", {channels, inputs, kConvolutionTaps});
      convolutions_.emplace_back(taps_first(weight, kWidths[layer], kConvolutionTaps),
                                 weights.take(name + ".bias", {channels}), kWidths[layer]);
    }
    const auto norm = "segmentation.norm." + std::to_string(layer);
    norms_.push_back({weights.take(norm + ".weight", {channels}), weights.take(norm + ".bias", {channels})});
  }
}

void WindowEncoder::start(std::span<const float> samples, size_t step) {
  samples_ = samples;
  step_ = step;
  next_ = origin_ = filtered_to_ = 0;
}

// Filters what the next windows need, and returns how many these are.
size_t WindowEncoder::prepare(size_t windows, const Team& team, const CancelToken& cancel) {
  const bool shared = step_ % kStride == 0; // otherwise the frames of windows lie between those of others
  const size_t step = step_ / kStride;
  const auto threads = static_cast<size_t>(team.threads());
  const size_t together = shared ? std::min({windows, threads, kTogether}) : 1;
  if (!shared) {
    origin_ = next_ * step_;
    filtered_to_ = 0;
  }
  const size_t first = shared ? next_ * step : 0;
  const size_t needed = kConvolved[0] + (together - 1) * step;
  if (needed > places_) {
    filtered_to_ = 0; // frames change their places
    filtered_.resize(needed * kWidths[0]);
    places_ = needed;
  }
  work_.resize(std::max(work_.size(), together));
  const size_t from = std::max(first, filtered_to_);
  const size_t count = first + needed - from;
  team.share((count + kBlock - 1) / kBlock, [&](size_t block) {
    filter(from + block * kBlock, std::min(kBlock, count - block * kBlock), cancel);
  });
  filtered_to_ = first + needed;
  return together;
}

void WindowEncoder::filter(size_t first, size_t count, const CancelToken& cancel) {
  cancel.check();
  std::array<float, kBlock * kStride + kTaps> wave{};
  const size_t at = std::min(origin_ + first * kStride, samples_.size());
  const auto part = samples_.subspan(at, std::min(wave.size(), samples_.size() - at));
  std::ranges::transform(part, wave.begin(), [](float x) { return std::fabs(x) < kTiniest ? 0 : x; });
  for (size_t done = 0; done < count;) {
    const size_t place = (first + done) % places_;
    const size_t run = std::min(count - done, places_ - place);
    convolutions_[0].multiply({&wave[done * kStride], kStride, kTaps}, run, &filtered_[place * kWidths[0]],
                              kWidths[0]);
    done += run;
  }
}

// The window's own normalization (x - mean) * factor + bias, behind the filters.
void WindowEncoder::normalize_wave(size_t window, Work& work) const {
  const size_t begin = std::min((next_ + window) * step_, samples_.size());
  const auto [mean, variance] = moments(samples_.subspan(begin, std::min(kWindow, samples_.size() - begin)));
  const double factor = wave_weight_[0] / std::sqrt(variance + kEpsilon);
  std::array<float, kWidths[0]> summands{};
  for (size_t i = 0; i < kWidths[0]; ++i)
    summands[i] = static_cast<float>((wave_bias_[0] - mean * factor) * filter_sums_[i]);
  const size_t first = ((next_ + window) * step_ - origin_) / kStride;
  const auto at = [&](size_t frame) { return &filtered_[(first + frame) % places_ * kWidths[0]]; };
  auto& pooled = work.pooled[0];
  pooled.resize(kConvolved[0] / kPool * kWidths[0]);
  for (size_t frame = 0; frame < kConvolved[0] / kPool; ++frame)
    pool_magnitudes(at(kPool * frame), at(kPool * frame + 1), at(kPool * frame + 2),
                    static_cast<float>(factor), summands.data(), &pooled[frame * kWidths[0]]);
}

const float* WindowEncoder::encode_one(size_t window, const CancelToken& cancel) {
  auto& work = work_[window];
  work.convolved.resize(kBlock * kWidths[1]);
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const size_t channels = kWidths[layer];
    auto& pooled = work.pooled[layer];
    if (layer == 0) {
      normalize_wave(window, work);
    } else {
      pooled.resize(kConvolved[layer] / kPool * channels);
      const size_t stride = kWidths[layer - 1];
      for (size_t first = 0; first < kConvolved[layer]; first += kBlock) {
        cancel.check();
        const size_t count = std::min(kBlock, kConvolved[layer] - first);
        convolutions_[layer].multiply(
            {&work.pooled[layer - 1][first * stride], stride, kConvolutionTaps * stride}, count,
            work.convolved.data(), channels);
        pool(work.convolved.data(), count, channels, &pooled[first / kPool * channels]);
      }
    }
    normalize(norms_[layer].weight.data(), norms_[layer].bias.data(), channels, pooled.data(),
              kConvolved[layer] / kPool);
  }
  return work.pooled[kLayers - 1].data();
}

} // namespace voxgate

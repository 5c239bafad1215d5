#include "speakers/embedding_head.h"

#include "layers/linear_layer.h"
#include "simd_dispatch.h"

#include <algorithm>
#include <array>

namespace voxgate {
namespace {

constexpr size_t kMels = 80;
constexpr size_t kDepth = 32; // channels of the pictures
constexpr size_t kBands = 10; // frequencies that are left at the end
static_assert(kDepth * kBands == EmbeddingHead::kValues);
constexpr size_t kStrip = 250; // frames that are computed together
constexpr size_t kReach = 10;  // frames on each side that the layers see, one each
constexpr FbankRecipe kRecipe{FbankWindow::povey, 1};

VOXGATE_VECTOR_CLONES
void add_and_relu(float* values, const float* others, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = std::max(values[i] + others[i], 0.0F);
}

} // namespace

// Frequencies and times with a border of zeros: [frequency][time][channel].
struct EmbeddingHead::Picture {
  void reshape(size_t heights, size_t widths, size_t depth) {
    bands = heights;
    frames = widths;
    channels = depth;
    const size_t row = (frames + 2) * channels;
    values.resize(std::max(values.size(), (bands + 2) * row));
    std::fill_n(at(0, 0), row, 0.0F);
    std::fill_n(at(bands + 1, 0), row, 0.0F);
    for (size_t band = 1; band <= bands; ++band) {
      std::fill_n(at(band, 0), channels, 0.0F);
      std::fill_n(at(band, frames + 1), channels, 0.0F);
    }
  }

  // Band 0 and frame 0 are the border before the first.
  const float* at(size_t band, size_t frame) const {
    return &values[(band * (frames + 2) + frame) * channels];
  }
  float* at(size_t band, size_t frame) { return &values[(band * (frames + 2) + frame) * channels]; }

  size_t bands = 0, frames = 0, channels = 0;
  std::vector<float> values;
};

EmbeddingHead::Convolution EmbeddingHead::convolution(NetworkWeights& weights, const std::string& name,
                                                      size_t inputs, size_t taps, size_t stride) {
  return {LinearLayer(weights, "embedding.head." + name,
                      {extent(kDepth), extent(inputs), extent(taps), extent(taps)}, true, taps * inputs),
          taps, stride};
}

EmbeddingHead::EmbeddingHead(NetworkWeights& weights) : fbank_(kMels, kRecipe) {
  ends_.push_back(convolution(weights, "first", 1, 3, 1));
  for (const std::string group : {"1.", "2."})
    for (const std::string index : {"0", "1"}) {
      const bool first = index == "0";
      const auto name = group + index;
      Residual block{convolution(weights, name + ".conv1", kDepth, 3, first ? 2 : 1),
                     convolution(weights, name + ".conv2", kDepth, 3, 1),
                     {}};
      if (first)
        block.shortcut.push_back(convolution(weights, name + ".shortcut", kDepth, 1, 2));
      residuals_.push_back(std::move(block));
    }
  ends_.push_back(convolution(weights, "last", kDepth, 3, 2));
}

// `beside` is added to the result.
void EmbeddingHead::convolve(const Convolution& convolution, const Picture& in, const Picture* beside,
                             bool with_relu, Picture& out) {
  const auto& [layer, taps, stride] = convolution;
  const size_t border = taps == 1 ? 1 : 0; // a single tap looks at the middle
  out.reshape((in.bands - 1) / stride + 1, in.frames, layer.outputs());
  for (size_t band = 0; band < out.bands; ++band) {
    float* target = out.at(band + 1, 1);
    layer.multiply({in.at(band * stride + border, border), in.channels, taps * in.channels, taps,
                    (in.frames + 2) * in.channels},
                   in.frames, target, out.channels);
    if (beside != nullptr)
      add_and_relu(target, beside->at(band + 1, 1), in.frames * out.channels);
    else if (with_relu)
      relu(target, in.frames * out.channels);
  }
}

// From rows of features to kBands bands. The result is one of the four pictures, which it works in.
const EmbeddingHead::Picture& EmbeddingHead::compute_strip(std::span<const float> rows,
                                                           std::span<Picture> pictures,
                                                           const CancelToken& cancel) const {
  Picture* in = &pictures[0];
  Picture* out = &pictures[1];
  out->reshape(kMels, rows.size() / kMels, 1);
  for (size_t frame = 0; frame < out->frames; ++frame)
    for (size_t mel = 0; mel < kMels; ++mel)
      *out->at(mel + 1, frame + 1) = rows[frame * kMels + mel];
  convolve(ends_[0], *out, nullptr, true, *in);
  for (const auto& block : residuals_) {
    cancel.check();
    convolve(block.first, *in, nullptr, true, pictures[2]);
    const Picture* beside = in;
    if (!block.shortcut.empty()) {
      convolve(block.shortcut[0], *in, nullptr, false, pictures[3]);
      beside = &pictures[3];
    }
    convolve(block.second, pictures[2], beside, true, *out);
    std::swap(in, out);
  }
  convolve(ends_[1], *in, nullptr, true, *out);
  return *out;
}

std::vector<float> EmbeddingHead::compute(std::span<const float> samples, size_t border, const Team& team,
                                          const CancelToken& cancel) const {
  auto rows = fbank_(samples);
  const size_t frames = rows.size() / kMels;
  std::array<double, kMels> means{};
  for (size_t i = 0; i < rows.size(); ++i)
    means[i % kMels] += rows[i] / static_cast<double>(frames);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<float>(rows[i] - means[i % kMels]);

  std::vector<float> result((frames + 2 * border) * kValues);
  const size_t strips = (frames + kStrip - 1) / kStrip;
  const size_t together = std::min(strips, static_cast<size_t>(team.threads()));
  std::vector<std::array<Picture, 4>> pictures(together);
  for (size_t done = 0; done < strips; done += together)
    team.share(std::min(together, strips - done), [&](size_t i) {
      const size_t begin = (done + i) * kStrip;
      const size_t end = std::min(begin + kStrip, frames);
      const size_t from = begin - std::min(begin, kReach);
      const size_t to = std::min(end + kReach, frames);
      const auto& picture =
          compute_strip(std::span(rows).subspan(from * kMels, (to - from) * kMels), pictures[i], cancel);
      for (size_t frame = begin; frame < end; ++frame)
        for (size_t band = 0; band < kBands; ++band)
          for (size_t channel = 0; channel < kDepth; ++channel)
            result[(frame + border) * kValues + channel * kBands + band] =
                picture.at(band + 1, frame - from + 1)[channel];
    });
  return result;
}

} // namespace voxgate

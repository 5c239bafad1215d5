#include "turns/whisper_mel.h"

#include "audio/real_fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace voxgate {
namespace {

constexpr size_t kPadding = WhisperMel::kFrame / 2; // a frame is centered at its time
constexpr size_t kShare = 100;                      // frames that a thread computes at a time
constexpr float kVarianceFloor = 1e-7F;
constexpr float kPowerFloor = 1e-10F;
constexpr float kDynamicRange = 8; // of the logarithms

// The samples with a mean of 0 and a variance of 1, mirrored at both ends.
std::vector<float> normalized(std::span<const float> samples) {
  const auto count = static_cast<double>(samples.size());
  double sum = 0;
  for (const float sample : samples)
    sum += sample;
  const double mean = sum / count;
  double squares = 0;
  for (const float sample : samples)
    squares += (sample - mean) * (sample - mean);
  const double factor = 1 / std::sqrt(squares / count + kVarianceFloor);
  std::vector<float> padded(samples.size() + 2 * kPadding);
  for (size_t i = 0; i < samples.size(); ++i)
    padded[kPadding + i] = static_cast<float>((samples[i] - mean) * factor);
  const size_t last = kPadding + samples.size() - 1;
  for (size_t i = 1; i <= kPadding; ++i) {
    padded[kPadding - i] = padded[kPadding + i];
    padded[last + i] = padded[last - i];
  }
  return padded;
}

} // namespace

WhisperMel::WhisperMel(std::vector<float> filters, size_t bands)
    : bands_(bands), filters_(std::move(filters)), ranges_(bands) {
  for (size_t i = 0; i < kFrame; ++i)
    window_[i] = static_cast<float>(
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / double{kFrame}));
  for (size_t band = 0; band < bands_; ++band) {
    const auto row = std::span(filters_).subspan(band * kBins, kBins);
    const auto is_part = [](float weight) { return weight != 0; };
    const auto first = std::ranges::find_if(row, is_part);
    const auto last = std::find_if(row.rbegin(), row.rend(), is_part);
    ranges_[band] = {static_cast<size_t>(first - row.begin()), static_cast<size_t>(row.rend() - last)};
  }
}

void WhisperMel::operator()(std::span<const float> samples, float* rows, const Team& team) const {
  const auto padded = normalized(samples);
  const size_t count = samples.size() / kHop;
  team.share((count + kShare - 1) / kShare, [&](size_t share) {
    frames(padded, share * kShare, std::min(kShare, count - share * kShare), rows);
  });
  const std::span values(rows, count * bands_);
  const float floor = *std::ranges::max_element(values) - kDynamicRange;
  for (float& value : values)
    value = (std::max(value, floor) + 4) / 4;
}

void WhisperMel::frames(std::span<const float> padded, size_t first, size_t count, float* rows) const {
  RealFft fft(kFrame);
  std::array<float, kFrame> windowed{};
  std::array<float, kBins> power{};
  for (size_t frame = first; frame < first + count; ++frame) {
    for (size_t i = 0; i < kFrame; ++i)
      windowed[i] = padded[frame * kHop + i] * window_[i];
    const auto spectrum = fft(windowed);
    for (size_t bin = 0; bin < kBins; ++bin)
      power[bin] = std::norm(spectrum[bin]);
    for (size_t band = 0; band < bands_; ++band) {
      float energy = 0;
      for (size_t bin = ranges_[band].first; bin < ranges_[band].end; ++bin)
        energy += filters_[band * kBins + bin] * power[bin];
      rows[frame * bands_ + band] = std::log10(std::max(energy, kPowerFloor));
    }
  }
}

} // namespace voxgate

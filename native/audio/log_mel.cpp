#include "audio/log_mel.h"

#include "audio/real_fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace voxgate {
namespace {

constexpr size_t kShare = 100; // frames that one of several threads computes at a time
constexpr float kFloor = 1e-10F;
constexpr float kRange = 8; // decades kept below the loudest

} // namespace

LogMel::LogMel(std::span<const float> filters, size_t bands) {
  for (size_t i = 0; i < kFrame; ++i)
    window_[i] =
        static_cast<float>(0.5 * (1 - std::cos(2 * std::numbers::pi * static_cast<double>(i) / kFrame)));
  filters_.reserve(bands);
  for (size_t band = 0; band < bands; ++band) {
    const auto row = filters.subspan(band * kBins, kBins);
    const auto is_part = [](float weight) { return weight != 0; };
    const auto first = std::ranges::find_if(row, is_part);
    const auto end = std::find_if(row.rbegin(), row.rend(), is_part).base();
    if (first < end)
      filters_.push_back({static_cast<size_t>(first - row.begin()), {first, end}});
    else
      filters_.push_back({});
  }
}

void LogMel::operator()(std::span<const float> padded, size_t frames, float* out, const Layout& layout,
                        const Team& team) const {
  const float silence = std::log10(kFloor);
  const std::span values(out, frames * filters_.size());
  std::ranges::fill(values, silence);
  const size_t heard = std::min(frames, padded.size() / kHop + 1);
  const size_t share = team.threads() == 1 ? heard : kShare;
  std::vector<float> loudest((heard + share - 1) / share);
  team.share(loudest.size(), [&](size_t i) {
    loudest[i] = compute(padded, i * share, std::min(heard, (i + 1) * share), out, layout);
  });
  const float floor = std::max(silence, *std::ranges::max_element(loudest)) - kRange;
  for (float& value : values)
    value = (std::max(value, floor) + 4) / 4;
}

float LogMel::compute(std::span<const float> padded, size_t first, size_t end, float* out,
                      const Layout& layout) const {
  RealFft fft(kFrame);
  std::array<float, kFrame> windowed{};
  std::array<float, kBins> power{};
  float loudest = std::log10(kFloor);
  for (size_t frame = first; frame < end; ++frame) {
    const size_t begin = std::min(frame * kHop, padded.size());
    const size_t count = std::min(kFrame, padded.size() - begin);
    for (size_t i = 0; i < count; ++i)
      windowed[i] = window_[i] * padded[begin + i];
    const auto spectrum = fft(std::span(windowed).first(count));
    for (size_t bin = 0; bin < kBins; ++bin)
      power[bin] = std::norm(spectrum[bin]);
    for (size_t band = 0; band < filters_.size(); ++band) {
      const auto& [first_bin, weights] = filters_[band];
      float energy = 0;
      for (size_t i = 0; i < weights.size(); ++i)
        energy += weights[i] * power[first_bin + i];
      const float value = std::log10(std::max(energy, kFloor));
      out[band * layout.band_step + frame * layout.frame_step] = value;
      loudest = std::max(loudest, value);
    }
  }
  return loudest;
}

} // namespace voxgate

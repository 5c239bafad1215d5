#include "backends/whisper/whisper_mel.h"

#include "audio/real_fft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace voxgate {
namespace {

constexpr size_t kFrame = 400;
constexpr size_t kHop = 160;
constexpr size_t kBins = kFrame / 2 + 1;
constexpr float kFloor = 1e-10F;
constexpr float kRange = 8; // decades kept below the loudest

// A row of the filterbank is a triangle; the rest of it is zeros.
struct Triangle {
  size_t first_bin = 0;
  std::span<const float> weights;
};

std::vector<Triangle> triangles(std::span<const float> filters, size_t mels) {
  std::vector<Triangle> result;
  for (size_t mel = 0; mel < mels; ++mel) {
    const auto row = filters.subspan(mel * kBins, kBins);
    const auto set = [](float weight) { return weight != 0; };
    const auto first = std::find_if(row.begin(), row.end(), set);
    const auto last = std::find_if(row.rbegin(), row.rend(), set).base();
    const auto width = first < last ? static_cast<size_t>(last - first) : 0;
    const auto first_bin = static_cast<size_t>(first - row.begin());
    result.push_back({first_bin, row.subspan(std::min(first_bin, kBins - width), width)});
  }
  return result;
}

std::array<float, kFrame> hann_window() {
  std::array<float, kFrame> window{};
  for (size_t i = 0; i < kFrame; ++i)
    window[i] =
        static_cast<float>(0.5 * (1 - std::cos(2 * std::numbers::pi * static_cast<double>(i) / kFrame)));
  return window;
}

// Half a frame of the beginning mirrored before it, so that the first frame is centered on the first sample.
std::vector<float> centered(std::span<const float> samples) {
  std::vector<float> result(samples.rend() - kFrame / 2 - 1, samples.rend() - 1);
  result.insert(result.end(), samples.begin(), samples.end());
  return result;
}

} // namespace

void whisper_log_mel(std::span<const float> samples, std::span<const float> filters, size_t mels,
                     std::span<float> out) {
  static const std::array<float, kFrame> window = hann_window();
  const auto bank = triangles(filters, mels);
  const auto padded = centered(samples);
  const size_t frames = out.size() / mels;
  const size_t heard = std::min(frames, padded.size() / kHop + 1);
  std::fill(out.begin(), out.end(), std::log10(kFloor));

  RealFft fft(kFrame);
  std::array<float, kFrame> windowed{};
  std::array<float, kBins> power{};
  float loudest = std::log10(kFloor);
  for (size_t frame = 0; frame < heard; ++frame) {
    const size_t begin = std::min(frame * kHop, padded.size());
    const size_t count = std::min(kFrame, padded.size() - begin);
    for (size_t i = 0; i < count; ++i)
      windowed[i] = window[i] * padded[begin + i];
    const auto spectrum = fft(std::span(windowed).first(count));
    for (size_t bin = 0; bin < kBins; ++bin)
      power[bin] = std::norm(spectrum[bin]);
    for (size_t mel = 0; mel < mels; ++mel) {
      const auto& [first_bin, weights] = bank[mel];
      float energy = 0;
      for (size_t i = 0; i < weights.size(); ++i)
        energy += weights[i] * power[first_bin + i];
      const float value = std::log10(std::max(energy, kFloor));
      out[mel * frames + frame] = value;
      loudest = std::max(loudest, value);
    }
  }
  for (float& value : out)
    value = (std::max(value, loudest - kRange) + 4) / 4;
}

} // namespace voxgate

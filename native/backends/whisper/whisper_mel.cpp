#include "backends/whisper/whisper_mel.h"

#include "audio/mel_bank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace voxgate {
namespace {

constexpr size_t kFrame = 400;
constexpr size_t kHop = 160;
constexpr size_t kBins = kFrame / 2 + 1;
constexpr float kFloor = 1e-10F;
constexpr float kRange = 8; // decades kept below the loudest

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
  const MelBank bank(filters.first(mels * kBins), mels);
  const auto padded = centered(samples);
  const size_t frames = out.size() / mels;
  const size_t heard = std::min(frames, padded.size() / kHop + 1);
  std::fill(out.begin(), out.end(), std::log10(kFloor));

  RealFft fft(kFrame);
  std::vector<RealFft::Values> windowed(kFrame);
  std::vector<RealFft::Values> energies(mels);
  float loudest = std::log10(kFloor);
  for (size_t first = 0; first < heard; first += RealFft::kFrames) {
    const size_t lanes = std::min(RealFft::kFrames, heard - first);
    std::ranges::fill(windowed, RealFft::Values{});
    for (size_t lane = 0; lane < lanes; ++lane) {
      const size_t begin = std::min((first + lane) * kHop, padded.size());
      const size_t count = std::min(kFrame, padded.size() - begin);
      for (size_t i = 0; i < count; ++i)
        windowed[i][lane] = window[i] * padded[begin + i];
    }
    bank.energies(fft.powers(windowed), energies);
    for (size_t mel = 0; mel < mels; ++mel) {
      for (size_t lane = 0; lane < lanes; ++lane) {
        const float value = std::log10(std::max(energies[mel][lane], kFloor));
        out[mel * frames + first + lane] = value;
        loudest = std::max(loudest, value);
      }
    }
  }
  for (float& value : out)
    value = (std::max(value, loudest - kRange) + 4) / 4;
}

} // namespace voxgate

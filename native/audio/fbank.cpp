#include "audio/fbank.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace voxgate {
namespace {

constexpr double kSampleRate = 16000;
constexpr double kLowestHz = 20;
constexpr float kPreemphasis = 0.97F;
constexpr float kFloor = 1.1920929e-7F; // float's epsilon, as in Kaldi

double mel(double hz) {
  return 1127.0 * std::log(1.0 + hz / 700.0);
}

} // namespace

Fbank::Fbank(int mels, const FbankRecipe& recipe) : scale_(recipe.scale) {
  for (size_t i = 0; i < kFrame; ++i) {
    const double wave = std::cos(2 * std::numbers::pi * static_cast<double>(i) / (kFrame - 1));
    window_[i] = static_cast<float>(recipe.window == FbankWindow::hamming ? 0.54 - 0.46 * wave
                                                                          : std::pow(0.5 - 0.5 * wave, 0.85));
  }

  const double low = mel(kLowestHz);
  const double step = (mel(kSampleRate / 2) - low) / (mels + 1);
  for (int i = 0; i < mels; ++i) {
    const double left = low + i * step;
    Filter filter;
    for (size_t bin = 0; bin < kBins; ++bin) {
      const double at = mel(static_cast<double>(bin) * kSampleRate / kFft) - left;
      if (at <= 0 || at >= 2 * step)
        continue;
      if (filter.weights.empty())
        filter.first_bin = bin;
      filter.weights.push_back(static_cast<float>(at <= step ? at / step : (2 * step - at) / step));
    }
    filters_.push_back(std::move(filter));
  }
}

std::vector<float> Fbank::operator()(std::span<const float> samples) const {
  const size_t frames = 1 + (samples.size() - kFrame) / kHop;
  std::vector<float> rows;
  rows.reserve(frames * filters_.size());
  RealFft fft(kFft);
  std::array<float, kBins> power{};
  for (size_t i = 0; i < frames; ++i) {
    power_spectrum(samples.subspan(i * kHop, kFrame), fft, power);
    for (const auto& filter : filters_) {
      float energy = 0;
      for (size_t j = 0; j < filter.weights.size(); ++j)
        energy += filter.weights[j] * power[filter.first_bin + j];
      rows.push_back(std::log(std::max(energy, kFloor)));
    }
  }
  return rows;
}

void Fbank::power_spectrum(std::span<const float> frame, RealFft& fft,
                           std::array<float, kBins>& power) const {
  double mean = 0;
  for (const float sample : frame)
    mean += sample;
  mean = mean / kFrame * scale_;

  std::array<float, kFrame> windowed{};
  // The first sample is its own predecessor.
  auto before = static_cast<float>(frame[0] * scale_ - mean);
  for (size_t i = 0; i < kFrame; ++i) {
    const auto now = static_cast<float>(frame[i] * scale_ - mean);
    windowed[i] = (now - kPreemphasis * before) * window_[i];
    before = now;
  }
  const auto spectrum = fft(windowed);
  for (size_t bin = 0; bin < kBins; ++bin)
    power[bin] = std::norm(spectrum[bin]);
}

} // namespace voxgate

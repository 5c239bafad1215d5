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

// [mels][bins] of a transform of `fft` samples. Kaldi leaves the Nyquist bin out.
std::vector<float> filters(int mels, size_t fft) {
  const size_t bins = fft / 2;
  const double low = mel(kLowestHz);
  const double step = (mel(kSampleRate / 2) - low) / (mels + 1);
  std::vector<float> result;
  for (int i = 0; i < mels; ++i) {
    const double left = low + i * step;
    for (size_t bin = 0; bin < bins; ++bin) {
      const double at = mel(static_cast<double>(bin) * kSampleRate / static_cast<double>(fft)) - left;
      result.push_back(static_cast<float>(std::max(0.0, std::min(at, 2 * step - at) / step)));
    }
  }
  return result;
}

} // namespace

Fbank::Fbank(int mels, const FbankRecipe& recipe)
    : scale_(recipe.scale), bank_(filters(mels, kFft), static_cast<size_t>(mels)) {
  for (size_t i = 0; i < kFrame; ++i) {
    const double wave = std::cos(2 * std::numbers::pi * static_cast<double>(i) / (kFrame - 1));
    window_[i] = static_cast<float>(recipe.window == FbankWindow::hamming ? 0.54 - 0.46 * wave
                                                                          : std::pow(0.5 - 0.5 * wave, 0.85));
  }
}

std::vector<float> Fbank::operator()(std::span<const float> samples) const {
  const size_t frames = 1 + (samples.size() - kFrame) / kHop;
  std::vector<float> rows(frames * bank_.bands());
  RealFft fft(kFft);
  std::vector<RealFft::Values> windowed(kFrame);
  std::vector<RealFft::Values> energies(bank_.bands());
  for (size_t first = 0; first < frames; first += RealFft::kFrames) {
    const size_t lanes = std::min(RealFft::kFrames, frames - first);
    for (size_t lane = 0; lane < lanes; ++lane)
      prepare(samples.subspan((first + lane) * kHop, kFrame), lane, windowed);
    bank_.energies(fft.powers(windowed), energies);
    for (size_t lane = 0; lane < lanes; ++lane)
      for (size_t band = 0; band < energies.size(); ++band)
        rows[(first + lane) * energies.size() + band] = std::log(std::max(energies[band][lane], kFloor));
  }
  return rows;
}

void Fbank::prepare(std::span<const float> frame, size_t lane, std::span<RealFft::Values> windowed) const {
  double mean = 0;
  for (const float sample : frame)
    mean += sample;
  mean = mean / kFrame * scale_;

  // The first sample is its own predecessor.
  auto before = static_cast<float>(frame[0] * scale_ - mean);
  for (size_t i = 0; i < kFrame; ++i) {
    const auto now = static_cast<float>(frame[i] * scale_ - mean);
    windowed[i][lane] = (now - kPreemphasis * before) * window_[i];
    before = now;
  }
}

} // namespace voxgate

#include "audio/resampler.h"

#include "backend.h"
#include "simd_dispatch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace voxgate {
namespace {

constexpr double kCrossings = 32; // zero crossings of the sinc on each side
constexpr double kBeta = 7;
constexpr double kPass = 0.92;
// The phases of all common rates are fewer, so that those are exact. The error of interpolation between 512
// is far below that of the window.
constexpr uint64_t kExactPhases = 640;
constexpr uint64_t kInterpolatedPhases = 512;
constexpr size_t kVector = 16; // floats that are computed side by side

double sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

// The modified Bessel function of the first kind and order 0, by its series.
double bessel(double x) {
  double term = 1;
  double sum = 1;
  for (int k = 1; term > 1e-12 * sum; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

VOXGATE_VECTOR_CLONES
float dot(const float* weights, const float* samples, size_t count) {
  std::array<float, kVector> sums{};
  for (size_t i = 0; i < count; i += kVector)
    for (size_t lane = 0; lane < kVector; ++lane)
      sums[lane] += weights[i + lane] * samples[i + lane];
  float sum = 0;
  for (const float part : sums)
    sum += part;
  return sum;
}

} // namespace

ResamplingFilters::ResamplingFilters(int rate) {
  const auto common = static_cast<uint64_t>(std::gcd(rate, kSampleRate));
  up_ = kSampleRate / common;
  down_ = static_cast<uint64_t>(rate) / common;
  const double scale = kPass * std::min(1.0, static_cast<double>(up_) / static_cast<double>(down_));
  half_ = static_cast<size_t>(std::ceil(kCrossings / scale));
  taps_ = (2 * half_ + kVector - 1) / kVector * kVector;
  rows_ = up_ <= kExactPhases ? up_ : kInterpolatedPhases;
  weights_.resize((rows_ + 1) * taps_);
  std::vector<double> filter(2 * half_);
  for (uint64_t row = 0; row <= rows_; ++row) {
    double sum = 0;
    for (size_t i = 0; i < filter.size(); ++i) {
      const double x = static_cast<double>(i) - static_cast<double>(half_ - 1) -
                       static_cast<double>(row) / static_cast<double>(rows_);
      const double place = x / static_cast<double>(half_);
      const double inside = 1 - place * place;
      filter[i] = inside <= 0 ? 0 : sinc(scale * x) * bessel(kBeta * std::sqrt(inside));
      sum += filter[i];
    }
    // They sum up to 1, so that a constant stays what it is.
    for (size_t i = 0; i < filter.size(); ++i)
      weights_[row * taps_ + i] = static_cast<float>(filter[i] / sum);
  }
}

float ResamplingFilters::at(uint64_t phase, const float* input) const {
  const uint64_t scaled = phase * rows_;
  const float* filter = weights_.data() + scaled / up_ * taps_;
  const float sample = dot(filter, input, taps_);
  if (scaled % up_ == 0)
    return sample;
  const float between = static_cast<float>(scaled % up_) / static_cast<float>(up_);
  return sample + between * (dot(filter + taps_, input, taps_) - sample);
}

Resampler::Resampler(int rate) {
  begin(rate);
}

void Resampler::begin(int rate) {
  rate_ = rate;
  consumed_ = produced_ = phase_ = 0;
  filters_ = rate == kSampleRate ? nullptr : &known_.try_emplace(rate, rate).first->second;
  // Before the first sample is silence, so the output begins with the input.
  held_.assign(filters_ == nullptr ? 0 : filters_->before(), 0.0F);
}

void Resampler::run(std::span<const float> input, std::vector<float>& output) {
  held_.insert(held_.end(), input.begin(), input.end());
  const size_t before = output.size();
  size_t at = 0;
  while (at + filters_->taps() <= held_.size()) {
    output.push_back(filters_->at(phase_, held_.data() + at));
    phase_ += filters_->down();
    at += phase_ / filters_->up();
    phase_ %= filters_->up();
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at));
  produced_ += output.size() - before;
}

void Resampler::process(std::span<const float> input, std::vector<float>& output) {
  consumed_ += input.size();
  if (filters_ != nullptr)
    run(input, output);
  else
    output.insert(output.end(), input.begin(), input.end());
}

void Resampler::finish(std::vector<float>& output) {
  if (filters_ == nullptr)
    return;
  const auto rate = static_cast<uint64_t>(rate_);
  const uint64_t wanted = (consumed_ * kSampleRate + rate / 2) / rate;
  const std::array<float, 1024> silence{};
  while (produced_ < wanted)
    run(silence, output);
  output.resize(output.size() - std::min<uint64_t>(output.size(), produced_ - wanted));
  produced_ = wanted;
}

} // namespace voxgate

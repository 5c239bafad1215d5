#include "harness.h"

#include "audio/real_fft.h"
#include "backends/whisper/whisper_logits.h"
#include "backends/whisper/whisper_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr size_t kFrame = 400;
constexpr size_t kHop = 160;
constexpr size_t kBins = 201;

std::vector<float> noise(size_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> samples(count);
  for (float& sample : samples)
    sample = uniform(generator);
  return samples;
}

std::vector<std::complex<double>> slow_transform(std::span<const float> samples, size_t size) {
  std::vector<std::complex<double>> result(size / 2 + 1);
  for (size_t bin = 0; bin < result.size(); ++bin)
    for (size_t i = 0; i < samples.size(); ++i)
      result[bin] += static_cast<double>(samples[i]) *
                     std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(bin * i % size) /
                                         static_cast<double>(size));
  return result;
}

// Makes three overlapping triangles and a row of zeros, as a damaged file may have.
std::vector<float> filterbank() {
  std::vector<float> filters(4 * kBins, 0);
  for (size_t mel = 0; mel < 3; ++mel)
    for (size_t bin = 0; bin < kBins; ++bin)
      filters[mel * kBins + bin] =
          std::max(0.0F, 1 - std::abs(static_cast<float>(bin) - static_cast<float>(40 + 60 * mel)) / 50);
  return filters;
}

} // namespace

TEST("the transform is the sum it stands for, for every size it is used with") {
  for (const size_t size : {20UL, 32UL, 400UL, 512UL, 1000UL}) {
    RealFft fft(size);
    for (const size_t count : {size, size / 2 + 3, size_t{1}}) {
      const auto samples = noise(count);
      const auto expected = slow_transform(samples, size);
      const auto computed = fft(samples);
      CHECK(computed.size() == size / 2 + 1);
      for (size_t bin = 0; bin < expected.size(); ++bin)
        CHECK(std::abs(std::complex<double>(computed[bin]) - expected[bin]) < 2e-5 * std::sqrt(double(size)));
    }
  }
}

TEST("the mel spectrogram is the one of Whisper's authors for audio followed by silence") {
  const size_t mels = 4;
  const size_t frames = 60;
  const auto samples = noise(6000); // 37.5 hops, so the last frames hold the end of the audio and zeros
  const auto filters = filterbank();
  std::vector<float> out(mels * frames, -1);
  whisper_log_mel(samples, filters, mels, out);

  // This computes as audio.py does: half a frame mirrored on the left, zeros on the right, log10, eight
  // decades, scaled.
  std::vector<float> padded(samples.begin() + 1, samples.begin() + 1 + kFrame / 2);
  std::reverse(padded.begin(), padded.end());
  padded.insert(padded.end(), samples.begin(), samples.end());
  padded.resize(kHop * frames + kFrame, 0);
  std::vector<double> expected(mels * frames);
  for (size_t frame = 0; frame < frames; ++frame) {
    std::vector<float> windowed(kFrame);
    for (size_t i = 0; i < kFrame; ++i)
      windowed[i] = padded[frame * kHop + i] *
                    static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / kFrame));
    const auto spectrum = slow_transform(windowed, kFrame);
    for (size_t mel = 0; mel < mels; ++mel) {
      double energy = 0;
      for (size_t bin = 0; bin < kBins; ++bin)
        energy += filters[mel * kBins + bin] * std::norm(spectrum[bin]);
      expected[mel * frames + frame] = std::log10(std::max(energy, 1e-10));
    }
  }
  const double loudest = *std::ranges::max_element(expected);
  for (size_t i = 0; i < out.size(); ++i)
    CHECK(std::abs(out[i] - (std::max(expected[i], loudest - 8) + 4) / 4) < 1e-4);
}

TEST("probabilities of a vocabulary are those of the softmax, and nothing is likely that may not come") {
  for (const size_t count : {1UL, 15UL, 16UL, 51865UL}) {
    auto logits = noise(count);
    for (float& logit : logits)
      logit *= 40;
    if (count > 2)
      logits[count / 2] = -INFINITY;
    double sum = 0;
    for (const float logit : logits)
      sum += std::exp(static_cast<double>(logit));
    std::vector<float> logprobs(count);
    log_softmax(logits, logprobs);
    CHECK(highest_of(logits) == *std::max_element(logits.begin(), logits.end()));
    CHECK(std::abs(log_sum_of_exponentials(logits) - std::log(sum)) < 2e-5);
    for (size_t i = 0; i < count; ++i) {
      if (std::isinf(logits[i])) {
        CHECK(logprobs[i] == -INFINITY);
        continue;
      }
      const double expected = logits[i] - std::log(sum);
      CHECK(std::abs(logprobs[i] - expected) < 2e-5);
      if (i % 100 == 0)
        CHECK(std::abs(softmax_at(logits, i) - std::exp(expected)) <= 2e-5 * std::exp(expected) + 1e-37);
    }
  }
}

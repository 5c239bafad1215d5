#include "turns/turn_mel.h"

#include <cmath>
#include <vector>

namespace voxgate {
namespace {

constexpr size_t kPadding = LogMel::kFrame / 2; // a frame is centered at its time
constexpr float kVarianceFloor = 1e-7F;

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

void turn_log_mel(const LogMel& mel, std::span<const float> samples, size_t bands, float* rows,
                  const Team& team) {
  mel(normalized(samples), samples.size() / LogMel::kHop, rows, {.band_step = 1, .frame_step = bands}, team);
}

} // namespace voxgate

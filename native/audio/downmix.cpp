#include "audio/downmix.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

// The energy of the average of two channels over that of half their difference, as the average becomes too
// weak to be heard, and as it is heard again. `src/audio/mid-side.ts` has the same numbers for what ffmpeg
// decodes.
constexpr double kCancelled = 1.0 / 64;
constexpr double kHeardAgain = 1.0 / 4;
constexpr float kFadeSec = 0.01F; // from one to the other without a click

} // namespace

float sane(float sample) {
  return std::isfinite(sample) ? std::clamp(sample, -1.0F, 1.0F) : 0.0F;
}

void Downmix::operator()(const SampleBlock& block, std::span<const float> samples) {
  const auto width = static_cast<size_t>(block.channels);
  const bool is_one = channel_ >= 0 && channel_ < block.channels;
  const size_t first = is_one ? static_cast<size_t>(channel_) : 0;
  const size_t mixed = is_one ? 1 : width;
  mono_.clear();
  for (size_t frame = 0; frame < block.frames; ++frame) {
    float sum = 0;
    for (size_t channel = first; channel < first + mixed; ++channel)
      sum += sane(samples[frame * width + channel]);
    mono_.push_back(sum / static_cast<float>(mixed));
  }
  sides_.assign(mixed == 2 ? 0 : block.frames, 0);
  if (mixed == 2)
    restore_cancelled(block, samples);
}

void Downmix::restore_cancelled(const SampleBlock& block, std::span<const float> samples) {
  double mid_energy = 0;
  double side_energy = 0;
  for (size_t frame = 0; frame < block.frames; ++frame) {
    sides_.push_back((sane(samples[2 * frame]) - sane(samples[2 * frame + 1])) / 2);
    mid_energy += mono_[frame] * mono_[frame];
    side_energy += sides_[frame] * sides_[frame];
  }
  cancels_ = mid_energy < side_energy * (cancels_ ? kHeardAgain : kCancelled);
  const float step = share_ < 0 ? 1 : 1 / (kFadeSec * static_cast<float>(block.rate));
  share_ = std::max(share_, 0.0F);
  for (size_t frame = 0; frame < block.frames && (cancels_ || share_ > 0); ++frame) {
    share_ = std::clamp(share_ + (cancels_ ? step : -step), 0.0F, 1.0F);
    mono_[frame] += share_ * (sides_[frame] - mono_[frame]);
  }
}

void Downmix::silence(size_t frames) {
  mono_.assign(frames, 0);
  sides_.assign(frames, 0);
}

} // namespace voxgate

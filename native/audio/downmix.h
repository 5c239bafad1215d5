#pragma once

#include "audio/frames.h"

#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

// A float file may hold any value, and one NaN in a filter would silence the rest of the file.
float sane(float sample);

// Makes one channel of the channels of a file: their average, or one of them. Two channels of opposite phase
// cancel each other in their average. Where it is far weaker than half their difference, the channels are
// nearly equal but for the sign, so that difference is what each of them holds, and what is heard.
class Downmix {
 public:
  // A negative `channel` is the average of all.
  explicit Downmix(int channel) : channel_(channel) {}

  // `samples` are those of all channels side by side. A block without the channel gives the average.
  void operator()(const SampleBlock& block, std::span<const float> samples);
  void silence(size_t frames);

  // The average of the channels, or the chosen one, in the last block.
  const std::vector<float>& mono() const { return mono_; }
  // Half the difference of two channels; of others it is silent.
  const std::vector<float>& sides() const { return sides_; }

 private:
  void restore_cancelled(const SampleBlock& block, std::span<const float> samples);

  int channel_;
  std::vector<float> mono_;
  std::vector<float> sides_;
  bool cancels_ = false;
  float share_ = -1; // of the difference in what is heard, 0..1; negative before the first block
};

} // namespace voxgate

#pragma once

#include "backend.h"

#include <vector>

struct whisper_context;
struct whisper_state;

namespace voxgate {

// Turns whisper.cpp's results of one chunk into segments whose times are inside the chunk and never fall.
//
// An aligned token ends where the warping path leaves it and starts where the previous one ended (OpenAI's
// timing.py). The first one of a window starts with its segment, because nothing is said before that. A token
// to which the alignment gave no time takes the last known one. Without alignment the times are whisper.cpp's
// estimate.
class SegmentTimes {
 public:
  SegmentTimes(bool aligned, int64_t limit_ms) : aligned_(aligned), limit_ms_(limit_ms) {}

  // whisper.cpp is about to encode another window; what it has decoded so far belongs to earlier ones.
  void begin_window(whisper_state& state);

  // The segments of the state's result from `first` on.
  std::vector<Segment> collect(const whisper_context& context, whisper_state& state, int first);

 private:
  bool aligned_;
  int64_t limit_ms_;
  int64_t floor_ms_ = 0;
  std::vector<int> window_starts_; // index of the first segment of each window
};

} // namespace voxgate

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace voxgate {

// The tokens from `first` up to, but not including, `last` are one segment. Times are positions of 20 ms from
// the start of the window.
struct TimedPiece {
  size_t first;
  size_t last;
  int start;
  int end;

  bool operator==(const TimedPiece&) const = default;
};

struct TimedPieces {
  std::vector<TimedPiece> pieces;
  int next; // where the next window begins

  bool operator==(const TimedPieces&) const = default;
};

// Cuts the text of a window into segments where two times stand side by side (OpenAI's transcribe.py). A text
// that ends with one time is the whole of the window. One that ends with two goes on at the second one, in
// the next window; what follows the last pair is decoded again there. `first_time`: the token of 0 s; those
// above are later times. `window`: the length of the window.
TimedPieces cut_at_times(std::span<const int32_t> tokens, int32_t first_time, int window);

// Calls `decode` for window after window of at most 30 s, until less than 100 ms of the audio are left. It
// gets the start and the length of the window, in frames of 10 ms, and returns how far the next one is from
// the start of this one. Throws Failure{incomplete} where too many windows end too early: without a bound,
// bad weights would encode a chunk 1500 times.
void for_each_window(int frames, const std::function<int(int start, int length)>& decode);

} // namespace voxgate

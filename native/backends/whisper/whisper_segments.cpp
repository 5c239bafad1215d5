#include "backends/whisper/whisper_segments.h"

#include "status.h"

#include <algorithm>
#include <string>

namespace voxgate {
namespace {

constexpr int kMaxWindows = 16;
constexpr int kWindowFrames = 3000;
constexpr int kLeastFrames = 10;

} // namespace

TimedPieces cut_at_times(std::span<const int32_t> tokens, int32_t first_time, int window) {
  const auto is_time = [&](size_t i) { return tokens[i] >= first_time; };
  const auto time = [&](size_t i) { return std::min(tokens[i] - first_time, window); };
  const bool ends_with_one = tokens.size() >= 2 && is_time(tokens.size() - 1) && !is_time(tokens.size() - 2);
  std::vector<size_t> cuts;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (is_time(i) && is_time(i - 1))
      cuts.push_back(i);
  }
  if (tokens.empty())
    return {{}, window};
  if (cuts.empty()) {
    const int start = is_time(0) ? time(0) : 0;
    const int end = ends_with_one ? time(tokens.size() - 1) : window;
    return {{{0, tokens.size(), start, std::max(start, end)}}, window};
  }
  if (ends_with_one)
    cuts.push_back(tokens.size());
  TimedPieces result{{}, ends_with_one ? window : time(cuts.back() - 1)};
  size_t first = 0;
  for (const size_t last : cuts) {
    const int start = is_time(first) ? time(first) : 0;
    result.pieces.push_back({first, last, start, std::max(start, time(last - 1))});
    first = last;
  }
  return result;
}

void for_each_window(int frames, const std::function<int(int start, int length)>& decode) {
  int windows = 0;
  for (int start = 0; start + kLeastFrames < frames; ++windows) {
    if (windows == kMaxWindows)
      throw Failure(StatusCode::incomplete, "The decoder ended " + std::to_string(kMaxWindows) +
                                                " windows before the end of the audio");
    start += std::max(1, decode(start, std::min(frames - start, kWindowFrames)));
  }
}

} // namespace voxgate

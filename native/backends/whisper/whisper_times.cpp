#include "backends/whisper/whisper_times.h"

#include "backends/whisper/whisper_internals.h"

#include <whisper.h>

#include <algorithm>

namespace voxgate {
namespace {

constexpr int64_t kUnitMs = 10; // whisper.cpp counts in hundredths of a second

} // namespace

void SegmentTimes::begin_window(whisper_state& state) {
  window_starts_.push_back(whisper_full_n_segments_from_state(&state));
}

std::vector<Segment> SegmentTimes::collect(const whisper_context& context, whisper_state& state, int first) {
  std::vector<Segment> result;
  const int32_t end_of_text =
      whisper_token_eot(const_cast<whisper_context*>(&context)); // the C API takes no const
  const int segments = whisper_full_n_segments_from_state(&state);
  for (int i = first; i < segments; ++i) {
    Segment segment;
    const auto raw_start = whisper_full_get_segment_t0_from_state(&state, i) * kUnitMs;
    const auto raw_end = whisper_full_get_segment_t1_from_state(&state, i) * kUnitMs;
    segment.start_ms = std::clamp<int64_t>(raw_start, 0, limit_ms_);
    segment.end_ms = std::clamp(raw_end, segment.start_ms, limit_ms_);
    segment.no_speech_prob = whisper_full_get_segment_no_speech_prob_from_state(&state, i);
    bool after_gap = aligned_ && i > 0 && std::ranges::find(window_starts_, i) != window_starts_.end();

    const int tokens = whisper_full_n_tokens_from_state(&state, i);
    for (int j = 0; j < tokens; ++j) {
      const auto data = whisper_full_get_token_data_from_state(&state, i, j);
      const bool is_text = data.id < end_of_text;
      int64_t start = data.t0 * kUnitMs;
      int64_t end = data.t1 * kUnitMs;
      if (aligned_) {
        end = is_text && data.t_dtw >= 0 ? data.t_dtw * kUnitMs : floor_ms_;
        start = after_gap ? std::min(segment.start_ms, end) : floor_ms_;
        after_gap = after_gap && !is_text;
      }
      Token token;
      token.id = data.id;
      token.logprob = data.plog;
      if (is_text)
        token.bytes = whisper_internals::token_bytes(context, data.id);
      token.start_ms = std::clamp(start, floor_ms_, limit_ms_);
      token.end_ms = std::clamp(end, token.start_ms, limit_ms_);
      floor_ms_ = aligned_ ? token.end_ms : token.start_ms;
      segment.tokens.push_back(std::move(token));
    }
    result.push_back(std::move(segment));
  }
  return result;
}

} // namespace voxgate

#include "backends/whisper/whisper_call.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace voxgate {
namespace {

// A window may end after 20 ms of audio, and the next one starts there. Without a bound, bad weights would
// encode a chunk 1500 times.
constexpr int kMaxWindows = 16;

} // namespace

WhisperCall::WhisperCall(const whisper_context& context, CallScope& scope, const ChunkEvents& events,
                         bool words, int64_t limit_ms, bool encoded)
    : context_(context), scope_(scope), events_(events), times_(words, limit_ms), encoded_(encoded) {
  scope_.skip_encoding(encoded_); // the spectrogram is made before the first window begins
}

// The caller decides what to believe and what to try again, so nothing is judged here: no fallback to other
// temperatures, no thresholds, nothing carried from window to window.
whisper_full_params WhisperCall::params(const ChunkOptions& options, int threads) {
  auto params = whisper_full_default_params(WHISPER_SAMPLING_GREEDY);
  params.n_threads = threads;
  params.language = options.language.c_str();
  params.translate = options.translate;
  params.no_context = true;
  params.token_timestamps = !options.words;
  params.max_tokens = options.max_tokens;
  params.temperature = options.temperature;
  params.temperature_inc = 0;
  params.greedy.best_of = options.temperature > 0 ? 5 : 1;
  params.entropy_thold = 0;
  params.logprob_thold = -INFINITY;
  params.no_speech_thold = 2;
  params.print_progress = false;
  params.print_timestamps = false;
  params.abort_callback = CallScope::should_abort;
  params.abort_callback_user_data = &scope_;
  params.encoder_begin_callback = [](whisper_context*, whisper_state* state, void* self) {
    return static_cast<WhisperCall*>(self)->begin_window(*state);
  };
  params.encoder_begin_callback_user_data = this;
  // With words the callback comes before the times are there; those are collected at the end.
  if (!options.words) {
    params.new_segment_callback = [](whisper_context*, whisper_state* state, int, void* self) {
      static_cast<WhisperCall*>(self)->collect(*state);
    };
    params.new_segment_callback_user_data = this;
  }
  params.progress_callback = [](whisper_context*, whisper_state*, int percent, void* self) {
    static_cast<WhisperCall*>(self)->advance(percent / 100.0);
  };
  params.progress_callback_user_data = this;
  return params;
}

std::vector<Segment> WhisperCall::finish(whisper_state& state) {
  if (windows_ > kMaxWindows)
    throw Failure(StatusCode::incomplete, "The decoder ended " + std::to_string(kMaxWindows) +
                                              " windows before the end of the audio");
  collect(state);
  advance(1);
  return std::move(segments_);
}

bool WhisperCall::begin_window(whisper_state& state) {
  times_.begin_window(state);
  scope_.skip_encoding(encoded_ && windows_ == 0);
  return ++windows_ <= kMaxWindows && !CallScope::should_abort(&scope_);
}

void WhisperCall::collect(whisper_state& state) {
  for (auto& segment : times_.collect(context_, state, static_cast<int>(segments_.size()))) {
    segments_.push_back(std::move(segment));
    if (events_.segment)
      events_.segment(segments_.back());
  }
}

void WhisperCall::advance(double fraction) {
  if (!events_.progress || fraction < progress_)
    return;
  progress_ = std::min(fraction, 1.0);
  events_.progress(progress_);
}

} // namespace voxgate

#pragma once

#include "backend.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_times.h"

#include <whisper.h>

namespace voxgate {

// One transcription, as the C callbacks of whisper.cpp see it: they collect what was decoded and decide
// whether another window is encoded. It lives on the stack of that call.
class WhisperCall {
 public:
  // `encoded`: the state already holds the encoding of the first window.
  WhisperCall(const whisper_context& context, CallScope& scope, const ChunkEvents& events, bool words,
              int64_t limit_ms, bool encoded);
  WhisperCall(const WhisperCall&) = delete;
  WhisperCall& operator=(const WhisperCall&) = delete;

  // Parameters of whisper_full with the callbacks of this call. They refer to `options`.
  whisper_full_params params(const ChunkOptions& options, int threads);

  // Everything that was decoded, once whisper_full has returned. Throws Failure{incomplete} when there were
  // more windows than a chunk may have, because what lies behind them was not decoded.
  std::vector<Segment> finish(whisper_state& state);

 private:
  bool begin_window(whisper_state& state);
  void collect(whisper_state& state);
  void advance(double fraction);

  const whisper_context& context_;
  CallScope& scope_;
  const ChunkEvents& events_;
  SegmentTimes times_;
  std::vector<Segment> segments_;
  bool encoded_;
  int windows_ = 0;
  double progress_ = 0;
};

} // namespace voxgate

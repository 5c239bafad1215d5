#pragma once

#include "backend.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_internals.h"

#include <span>
#include <vector>

namespace voxgate {

// Decodes the text of one chunk, or aligns a text that is given: the loop of OpenAI's transcribe.py over the
// windows of the chunk. The caller decides what to believe and what to try again, so nothing is judged here,
// and nothing is carried from window to window.
class WhisperTranscript {
 public:
  // `prompt`, `text`: tokens of text. A `text` that is not empty is aligned, and nothing is decoded.
  WhisperTranscript(whisper_context& context, whisper_state& state, CallScope& scope,
                    const CancelToken& cancel, const ChunkOptions& options, std::vector<int32_t> prompt,
                    std::vector<int32_t> text);

  // `padding`: the samples at the end that are not of the audio. `encoded`: the state holds the encoding of
  // exactly these samples. Throws Failure{repetition} where a window is nothing but a loop, and
  // Failure{incomplete} where the decoder ends too many windows too early,
  // Failure{inference_failed, out_of_memory}, and whatever CancelToken::check throws.
  std::vector<Segment> run(std::span<const float> samples, size_t padding, bool encoded);

  // How many windows were encoded so far.
  int windows() const { return windows_; }

 private:
  // Decodes a window that is encoded; both in frames of 10 ms. Returns where the next window begins.
  int decode_window(int frame, int frames);
  // The text behind a prompt.
  Hypothesis decode(const TokenRules& rules, const whisper_internals::DecoderPrompt& prompt,
                    const SearchOptions& options);
  // A more probable text than the one that was just decoded, of which `known` was kept; no tokens if there is
  // none, or it is not in doubt.
  Hypothesis second_look(const TokenRules& rules, SearchOptions options, int prompt_tokens,
                         const Hypothesis& text, const Choices& known);
  // Aligns the text with a window that is encoded. What little may be left behind the window gets nothing.
  int align_window(int frame, int frames);
  Segment segment_of(const Hypothesis& text, size_t first, size_t last, int64_t start_ms,
                     int64_t end_ms) const;
  // Where to keep the scores of the one text that is decoded; null where they are not those of its alignment.
  whisper_internals::KeptScores* kept_scores(bool times);
  // Aligns the tokens of the segments from this one on with so many frames of the window that begins there.
  void align(size_t first_segment, int frame, int frames);

  whisper_context& context_;
  whisper_state& state_;
  CallScope& scope_;
  const CancelToken& cancel_;
  const ChunkOptions& options_;
  std::vector<int32_t> prompt_;
  std::vector<int32_t> text_;
  SpecialTokens special_;
  std::vector<Segment> segments_;
  whisper_internals::KeptScores kept_; // of the window
  int windows_ = 0;
  float no_speech_probability_ = 0;
  int64_t limit_ms_ = 0;
  int64_t aligned_until_ms_ = 0;
};

} // namespace voxgate

#include "backends/whisper/whisper_transcript.h"

#include "backends/whisper/whisper_search.h"
#include "backends/whisper/whisper_segments.h"

#include <whisper.h>

#include <algorithm>
#include <utility>

namespace voxgate {
namespace {

constexpr int64_t kFrameMs = 10;
constexpr int64_t kPositionMs = 20;
constexpr int kFramesPerPosition = kPositionMs / kFrameMs;
constexpr int kDrawnTexts = 5; // at a temperature, as in the reference code
// Twice the rate of a fast speaker; a repetition with fewer tokens may be what was said. Without times the
// decoder loops on such speech even where it is right, so another attempt with times follows anyway.
constexpr int kMostRepeatedTokens = 6; // a second
// In audio that it does not understand the decoder writes a time after each word, and the rest is encoded
// again from there. So after some windows it writes no times, and takes the rest as one.
constexpr int kMostWindowsWithTimes = 3;

} // namespace

WhisperTranscript::WhisperTranscript(whisper_context& context, whisper_state& state, CallScope& scope,
                                     const CancelToken& cancel, const ChunkOptions& options,
                                     std::vector<int32_t> prompt, std::vector<int32_t> text)
    : context_(context), state_(state), scope_(scope), cancel_(cancel), options_(options),
      prompt_(std::move(prompt)), text_(std::move(text)),
      special_(whisper_internals::special_tokens(context)) {}

std::vector<Segment> WhisperTranscript::run(std::span<const float> samples, size_t padding, bool encoded) {
  limit_ms_ = static_cast<int64_t>(samples.size() - padding) * 1000 / kSampleRate;
  const auto end = static_cast<int>(samples.size() * 1000 / kSampleRate / kFrameMs);
  const auto step = [this](bool done) {
    cancel_.check();
    if (!done)
      throw Failure(StatusCode::inference_failed, "Whisper's encoder failed");
  };
  scope_.skip_encoding(encoded);
  step(whisper_internals::compute_spectrogram(context_, state_, samples, scope_.threads()));
  for_each_window(end, [&](int frame, int frames) {
    scope_.skip_encoding(encoded && windows_ == 0);
    scope_.set_window(whisper_internals::window_of(context_, state_, frames / kFramesPerPosition));
    ++windows_;
    step(whisper_internals::encode_window(context_, state_, frame, scope_.threads()));
    scope_.skip_encoding(false);
    const int next = text_.empty() ? decode_window(frame, frames) : align_window(frame, frames);
    cancel_.check();
    return next;
  });
  return std::move(segments_);
}

int WhisperTranscript::decode_window(int frame, int frames) {
  const int positions = frames / kFramesPerPosition;
  const bool times =
      options_.times && windows_ <= kMostWindowsWithTimes && !whisper_internals::has_no_times(context_);
  const TokenRules rules(special_, {.times = times, .last_time = positions});
  const auto prompt =
      whisper_internals::decoder_prompt(context_, prompt_, options_.language, options_.translate, times);
  const auto prompt_tokens = static_cast<int>(prompt.tokens.size());
  const int text_context = whisper_n_text_ctx(&context_);
  SearchOptions search_options;
  search_options.temperature = options_.temperature;
  search_options.beams = options_.temperature > 0 ? kDrawnTexts : options_.beams;
  // The model has no position behind its context, and the last token needs none: nothing is decoded after it.
  search_options.most_tokens = std::min(text_context / 2, text_context - prompt_tokens + 1);
  search_options.most_tokens_of_loop =
      times ? kMostRepeatedTokens * frames * static_cast<int>(kFrameMs) / 1000 : 0;
  if (options_.max_tokens > 0)
    search_options.most_tokens = std::min(search_options.most_tokens, options_.max_tokens);
  Choices choices;
  const int rivals = search_options.beams == 1 && !times ? options_.doubt.beams : 0;
  if (rivals > 0)
    search_options.kept = {&choices, static_cast<size_t>(rivals) + 1};
  whisper_internals::reserve_tokens(
      context_, state_, prompt_tokens + (search_options.beams + rivals) * search_options.most_tokens);
  auto text = decode(rules, prompt, search_options);
  if (auto surer = second_look(rules, search_options, prompt_tokens, text, choices); !surer.tokens.empty())
    text = std::move(surer);
  const auto cut = cut_at_times(text.tokens, special_.first_time, positions);
  const size_t first_segment = segments_.size();
  const int64_t start_ms = frame * kFrameMs;
  for (const auto& piece : cut.pieces)
    segments_.push_back(segment_of(text, piece.first, piece.last, start_ms + piece.start * kPositionMs,
                                   start_ms + piece.end * kPositionMs));
  if (!cut.pieces.empty() && cut.pieces.back().last == text.tokens.size())
    segments_.back().end_logprob = text.end_logprob;
  // A window that ends where it began would be decoded again and again.
  const bool is_whole = cut.next >= positions || cut.next <= 0;
  const int next = is_whole ? frames : cut.next * kFramesPerPosition;
  // The audio behind that is the next window's, whose words would have no time left if these took it.
  if (options_.words)
    align(first_segment, frame, next);
  return next;
}

Hypothesis WhisperTranscript::decode(const TokenRules& rules, const whisper_internals::DecoderPrompt& prompt,
                                     const SearchOptions& options) {
  auto* const kept = options.beams == 1 ? kept_scores(rules.has_times()) : nullptr;
  const auto logits = whisper_internals::decode_prompt(context_, state_, prompt, scope_.threads(), kept);
  no_speech_probability_ = logits.no_speech_probability;
  const auto prompt_tokens = prompt.tokens.size();
  return search(rules, options, logits.last, [&](std::span<const Extension> extensions) {
    cancel_.check();
    const auto position = static_cast<int>(prompt_tokens + extensions.front().at);
    return whisper_internals::decode_extensions(context_, state_, extensions, position, scope_.threads(),
                                                false, kept);
  });
}

Hypothesis WhisperTranscript::second_look(const TokenRules& rules, SearchOptions options, int prompt_tokens,
                                          const Hypothesis& text, const Choices& known) {
  const auto score = text.score();
  const auto& doubt = options_.doubt;
  if (known.empty() || score < static_cast<double>(doubt.least) || score >= static_cast<double>(doubt.sure))
    return {};
  options.beams = doubt.beams;
  options.known = &known;
  return search(rules, options, {}, [&](std::span<const Extension> extensions) {
    cancel_.check();
    const auto position = prompt_tokens + static_cast<int>(extensions.front().at);
    return whisper_internals::decode_extensions(context_, state_, extensions, position, scope_.threads(),
                                                true);
  });
}

int WhisperTranscript::align_window(int frame, int frames) {
  const auto prompt =
      whisper_internals::decoder_prompt(context_, prompt_, options_.language, options_.translate, false);
  const auto tokens = prompt.tokens.size() + text_.size() + 1; // the end of the text, too
  if (tokens > static_cast<size_t>(whisper_n_text_ctx(&context_)))
    throw Failure(StatusCode::text_too_long, "The text has " + std::to_string(text_.size()) + " tokens");
  whisper_internals::reserve_tokens(context_, state_, static_cast<int>(tokens));
  Hypothesis text;
  text.tokens = text_;
  text.logprobs =
      whisper_internals::score_text(context_, state_, prompt, text_, scope_.threads(), kept_scores(false));
  cancel_.check();
  segments_.push_back(segment_of(text, 0, text_.size(), frame * kFrameMs, (frame + frames) * kFrameMs));
  align(segments_.size() - 1, frame, frames);
  return static_cast<int>(kMaxChunkSamples);
}

whisper_internals::KeptScores* WhisperTranscript::kept_scores(bool times) {
  kept_ = {};
  const bool aligns = options_.words || !text_.empty();
  const bool is_prompt_of_alignment = prompt_.empty() && !times;
  const bool keeps = aligns && is_prompt_of_alignment && whisper_internals::may_keep_scores(context_, state_);
  return keeps ? &kept_ : nullptr;
}

Segment WhisperTranscript::segment_of(const Hypothesis& text, size_t first, size_t last, int64_t start_ms,
                                      int64_t end_ms) const {
  Segment segment;
  segment.start_ms = std::min(start_ms, limit_ms_);
  segment.end_ms = std::clamp(end_ms, segment.start_ms, limit_ms_);
  segment.no_speech_prob = no_speech_probability_;
  // Without an alignment the tokens share the time of the segment evenly.
  const auto count = static_cast<int64_t>(last - first);
  const int64_t length_ms = segment.end_ms - segment.start_ms;
  for (size_t i = first; i < last; ++i) {
    const auto at = static_cast<int64_t>(i - first);
    Token token;
    token.id = text.tokens[i];
    token.logprob = text.logprobs[i];
    if (token.id < special_.end_of_text)
      token.bytes = whisper_internals::token_bytes(context_, token.id);
    token.start_ms = segment.start_ms + length_ms * at / count;
    token.end_ms = segment.start_ms + length_ms * (at + 1) / count;
    segment.tokens.push_back(std::move(token));
  }
  return segment;
}

// A token ends where the path leaves it and starts where the one before ended. The first one of a window
// starts with its segment, because nothing is said before that. A token that is not text has no length.
void WhisperTranscript::align(size_t first_segment, int frame, int frames) {
  std::vector<int32_t> spoken;
  for (size_t i = first_segment; i < segments_.size(); ++i) {
    for (const auto& token : segments_[i].tokens) {
      if (token.id < special_.end_of_text)
        spoken.push_back(token.id);
    }
  }
  const auto ends =
      whisper_internals::align_text(context_, state_, spoken, options_.language, options_.translate,
                                    frames / kFramesPerPosition, scope_.threads(), std::move(kept_));
  size_t next = 0;
  bool is_first = true;
  for (size_t i = first_segment; i < segments_.size(); ++i) {
    for (auto& token : segments_[i].tokens) {
      const bool is_text = token.id < special_.end_of_text;
      if (is_text && ends.empty()) { // too little audio for a path: the times of `segment_of` stay
        token.start_ms = std::max(token.start_ms, aligned_until_ms_);
        token.end_ms = std::max(token.end_ms, token.start_ms);
        aligned_until_ms_ = token.end_ms;
        continue;
      }
      const int64_t end_ms = is_text && next < ends.size()
                                 ? std::min<int64_t>(frame * kFrameMs + ends[next] * kPositionMs, limit_ms_)
                                 : aligned_until_ms_;
      token.end_ms = std::max(end_ms, aligned_until_ms_);
      token.start_ms = aligned_until_ms_;
      if (is_text && is_first)
        token.start_ms = std::clamp(segments_[i].start_ms, aligned_until_ms_, token.end_ms);
      is_first = is_first && !is_text;
      next += is_text ? 1 : 0;
      aligned_until_ms_ = token.end_ms;
    }
  }
}

} // namespace voxgate

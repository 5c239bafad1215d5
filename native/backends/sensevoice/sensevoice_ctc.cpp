#include "backends/sensevoice/sensevoice_ctc.h"

#include "keywords/speller.h"
#include "models/sentencepiece.h"
#include "status.h"

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

// CTC says when a token was recognized, not how long it was spoken; few last longer than this.
constexpr int64_t kLongestTokenMs = 400;

constexpr std::string_view kEmotions[] = {"HAPPY",   "SAD",       "ANGRY",     "NEUTRAL",
                                          "FEARFUL", "DISGUSTED", "SURPRISED", "EMO_UNKNOWN"};

void require_numbers(bool condition) {
  if (!condition)
    throw Failure(StatusCode::inference_failed, "The model computed values that are not numbers");
}

float log_sum(const std::vector<float>& row, float highest) {
  double sum = 0;
  for (const float logit : row)
    sum += std::exp(logit - highest);
  return highest + static_cast<float>(std::log(sum));
}

// The answer of one of the first positions.
void apply_tag(std::string_view tag, const SenseVoicePeak& peak, const SenseVoiceShape& shape,
               Segment& segment) {
  const auto language = std::ranges::find(shape.languages, peak.token, &SenseVoiceLanguage::token);
  if (language != shape.languages.end()) {
    segment.language = language->code;
    segment.language_probability = std::exp(peak.logprob);
  } else if (std::ranges::find(kEmotions, tag) != std::end(kEmotions)) {
    segment.emotion = tag;
  } else if (tag != "withitn" && tag != "woitn") {
    segment.event = tag;
  }
}

// Tokens so far end where their neighbor begins, and none after the audio.
void settle_times(Segment& segment, int64_t limit_ms) {
  int64_t next = limit_ms;
  for (auto token = segment.tokens.rbegin(); token != segment.tokens.rend(); ++token) {
    token->start_ms = std::min(token->start_ms, next);
    token->end_ms = std::clamp(token->end_ms, token->start_ms, next);
    next = token->start_ms;
  }
  segment.start_ms = segment.tokens.front().start_ms;
  segment.end_ms = segment.tokens.back().end_ms;
}

} // namespace

SenseVoicePeak peak_of(const std::vector<float>& logits, int32_t blank) {
  const auto top = std::ranges::max_element(logits);
  SenseVoicePeak peak{static_cast<int32_t>(top - logits.begin()), 0};
  require_numbers(std::isfinite(*top));
  if (peak.token != blank) // most positions are blank, and the sum is over the whole vocabulary
    peak.logprob = *top - log_sum(logits, *top);
  require_numbers(std::isfinite(peak.logprob)); // a NaN need not be the top
  return peak;
}

void put_keywords(std::vector<SenseVoicePeak>& peaks, const KeywordTrie& keywords,
                  const SenseVoiceVocabulary& vocabulary, const SenseVoiceScores& scores) {
  CtcFrames frames;
  frames.blank = vocabulary.blank;
  for (const auto& peak : peaks)
    frames.best.push_back(peak.token);
  int asked = -1;
  float highest = 0; // of that position
  frames.below_best = [&](int position, int32_t token) {
    const int32_t best = frames.best[static_cast<size_t>(position)];
    if (std::exchange(asked, position) != position)
      highest = scores.logit(position, best);
    return token == best ? 0 : std::max(0.0F, highest - scores.logit(position, token));
  };
  frames.begins_word = [&](int32_t token) {
    const auto index = static_cast<size_t>(token);
    const auto text = piece_text(vocabulary.pieces[index]);
    return !vocabulary.spoken[index] || text.starts_with(' ') || begins_unspaced(text);
  };
  for (const auto& keyword : spot_keywords(keywords, frames, kSenseVoiceQueries)) {
    int position = keyword.begin;
    for (const auto& [token, below] : keyword.frames) {
      auto& peak = peaks[static_cast<size_t>(position)];
      if (peak.token == frames.blank && token != frames.blank)
        peak.logprob = scores.blank_logprob(position);
      peak = {token, token == frames.blank ? 0 : peak.logprob - below};
      ++position;
    }
  }
}

Segment read_sensevoice(const std::vector<SenseVoicePeak>& peaks, const std::vector<float>& first,
                        const SenseVoiceShape& shape, const SenseVoiceVocabulary& vocabulary,
                        int64_t limit_ms) {
  const int64_t frame_ms = shape.frame_ms();
  Segment segment;
  int32_t before = vocabulary.blank;
  for (int position = 0; position < static_cast<int>(peaks.size()); ++position) {
    const SenseVoicePeak peak = peaks[static_cast<size_t>(position)];
    if (position == 0) {
      if (peak.token == vocabulary.no_speech)
        return {};
      const auto silent = first[static_cast<size_t>(vocabulary.no_speech)];
      segment.no_speech_prob = std::exp(silent - log_sum(first, *std::ranges::max_element(first)));
      require_numbers(std::isfinite(segment.no_speech_prob));
    }
    const bool repeated = peak.token == std::exchange(before, peak.token);
    if (peak.token == vocabulary.blank)
      continue;
    const auto index = static_cast<size_t>(peak.token);
    if (!vocabulary.spoken[index]) {
      const auto tag = tag_name(vocabulary.pieces[index]);
      if (position < kSenseVoiceQueries && !tag.empty())
        apply_tag(tag, peak, shape, segment);
      continue;
    }
    // A frame reaches half its length to both sides of the audio it starts at.
    const int64_t frame = std::max(0, position - kSenseVoiceQueries);
    const int64_t start = std::max<int64_t>(0, frame * frame_ms - frame_ms / 2);
    const int64_t end = frame * frame_ms + frame_ms / 2;
    if (repeated && !segment.tokens.empty()) {
      auto& token = segment.tokens.back();
      token.logprob = std::max(token.logprob, peak.logprob);
      token.end_ms = std::max(token.end_ms, end);
    } else {
      segment.tokens.push_back({peak.token, piece_text(vocabulary.pieces[index]), peak.logprob, start,
                                std::max(end, start + kLongestTokenMs)});
    }
  }
  if (!segment.tokens.empty())
    settle_times(segment, limit_ms);
  return segment;
}

std::vector<LanguageProbability> rank_languages(const std::vector<float>& row, const SenseVoiceShape& shape) {
  const auto logit = [&](const SenseVoiceLanguage& language) {
    return row[static_cast<size_t>(language.token)];
  };
  float highest = -INFINITY;
  for (const auto& language : shape.languages)
    highest = std::max(highest, logit(language));
  require_numbers(std::isfinite(highest));
  std::vector<LanguageProbability> ranked;
  float sum = 0;
  for (const auto& language : shape.languages) {
    ranked.push_back({language.code, std::exp(logit(language) - highest)});
    sum += ranked.back().probability;
  }
  require_numbers(std::isfinite(sum));
  for (auto& guess : ranked)
    guess.probability /= sum;
  std::ranges::stable_sort(ranked, std::ranges::greater{}, &LanguageProbability::probability);
  return ranked;
}

} // namespace voxgate

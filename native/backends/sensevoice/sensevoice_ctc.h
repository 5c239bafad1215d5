#pragma once

#include "backend.h"
#include "backends/sensevoice/sensevoice_shape.h"
#include "keywords/keyword_spotter.h"

namespace voxgate {

// The most probable token of a position, with its natural log probability, which is only computed (else 0)
// where the token is not blank.
struct SenseVoicePeak {
  int32_t token = 0;
  float logprob = 0;
};

// Throws Failure{inference_failed} where a logit is not a number.
SenseVoicePeak peak_of(const std::vector<float>& logits, int32_t blank);

// What the search for keywords asks the encoder.
struct SenseVoiceScores {
  std::function<float(int position, int32_t token)> logit;
  std::function<float(int position)> blank_logprob; // where the best token is blank
};

// Puts the keywords that are found behind the queries in the place of the best tokens there.
void put_keywords(std::vector<SenseVoicePeak>& peaks, const KeywordTrie& keywords,
                  const SenseVoiceVocabulary& vocabulary, const SenseVoiceScores& scores);

// Decodes greedily: the best token of each position, each run of one token once, without blanks. The answers
// to the four queries become fields; every other tag is dropped. The segment has no tokens where the model
// heard no speech. `first` are the logits of the first position; `limit_ms` is the length of the audio.
Segment read_sensevoice(const std::vector<SenseVoicePeak>& peaks, const std::vector<float>& first,
                        const SenseVoiceShape& shape, const SenseVoiceVocabulary& vocabulary,
                        int64_t limit_ms);

// The languages by the probability that the first position gives them, most probable first.
std::vector<LanguageProbability> rank_languages(const std::vector<float>& row, const SenseVoiceShape& shape);

} // namespace voxgate

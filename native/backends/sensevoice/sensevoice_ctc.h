#pragma once

#include "backend.h"
#include "backends/sensevoice/sensevoice_shape.h"

namespace voxgate {

// The most probable token of a position, with its natural log probability, which is only computed (else 0)
// where the token is not blank.
struct SenseVoicePeak {
  int32_t token = 0;
  float logprob = 0;
};

// Throws Failure{inference_failed} where a logit is not a number.
SenseVoicePeak peak_of(const std::vector<float>& logits, int32_t blank);

// Decodes greedily: the best token of each position, each run of one token once, without blanks. The answers
// to the four queries become fields; every other tag is dropped. The segment has no tokens where the model
// heard no speech. `first` are the logits of the first position; `limit_ms` is the length of the audio.
Segment read_sensevoice(const std::vector<SenseVoicePeak>& peaks, const std::vector<float>& first,
                        const SenseVoiceShape& shape, const SenseVoiceVocabulary& vocabulary,
                        int64_t limit_ms);

// The languages by the probability that the first position gives them, most probable first.
std::vector<LanguageProbability> rank_languages(const std::vector<float>& row, const SenseVoiceShape& shape);

// UTF-8 of a SentencePiece piece: its "▁" stands for a space.
std::string piece_text(std::string_view piece);

} // namespace voxgate

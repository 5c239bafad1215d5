#pragma once

#include "backend.h"
#include "backends/sensevoice/sensevoice_shape.h"

#include <functional>

namespace voxgate {

// Logits of one position; called once for each, in order.
using LogitRow = std::function<void(int position, std::vector<float>& row)>;

// Decodes greedily: the best token of each position, each run of one token once, without blanks. The answers
// to the four queries become fields; every other tag is dropped. The segment has no tokens where the model
// heard no speech. `limit_ms` is the length of the audio.
Segment read_sensevoice(int positions, const LogitRow& logits, const SenseVoiceShape& shape,
                        const SenseVoiceVocabulary& vocabulary, int64_t limit_ms);

// The languages by the probability that the first position gives them, most probable first.
std::vector<LanguageProbability> rank_languages(const std::vector<float>& row, const SenseVoiceShape& shape);

// UTF-8 of a SentencePiece piece: its "▁" stands for a space.
std::string piece_text(std::string_view piece);

} // namespace voxgate

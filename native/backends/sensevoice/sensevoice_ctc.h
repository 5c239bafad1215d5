#pragma once

#include "backend.h"
#include "backends/sensevoice/sensevoice_shape.h"

#include <functional>

namespace voxgate {

// Logits of one position; called once for each, in order.
using LogitRow = std::function<void(int position, std::vector<float>& row)>;

// What the model wrote: greedy, each run of one token once, blanks dropped. The answers to the four queries
// become fields, every other tag is dropped. An empty segment (no tokens) where it heard no speech.
// `limit_ms` is the length of the audio.
Segment read_sensevoice(int positions, const LogitRow& logits, const SenseVoiceShape& shape,
                        const SenseVoiceVocabulary& vocabulary, int64_t limit_ms);

// How the first position weighs the languages, most probable first.
std::vector<LanguageProbability> rank_languages(const std::vector<float>& row, const SenseVoiceShape& shape);

// UTF-8 of a SentencePiece piece: its "▁" stands for a space.
std::string piece_text(std::string_view piece);

} // namespace voxgate

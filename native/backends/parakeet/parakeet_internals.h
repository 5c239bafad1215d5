#pragma once

#include "cancel.h"
#include "keywords/keyword_trie.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

struct parakeet_context;
struct parakeet_state;
struct parakeet_token_data;

// What the C API of parakeet.cpp does not offer. parakeet_internals.cpp compiles parakeet.cpp itself and so
// reaches its private structs; a new version that moves their fields fails to compile there instead of
// misbehaving.

namespace voxgate::parakeet_internals {

// Makes every graph of the state that runs on a CPU stop between two operations; null takes it back.
void set_graph_abort(parakeet_state& state, const CancelToken* cancel);

// Sets how many mel frames later states have room for. The file says 50 s, which costs 150 MB more than 30 s.
void set_audio_context(parakeet_context& context, int mel_frames);

using TokenCallback = std::function<void(const parakeet_token_data& token, std::span<const float> logits)>;

// Computes the mel spectrogram, the encoder, the decoder and the times of punctuation, as parakeet_full does,
// but only the encoder with several threads: the decoder's graphs are so small that starting and awaiting
// threads costs more than they save, and on a busy machine many times as much. `on_token` gets the logits
// (text tokens, blank, durations) from which the token was chosen: the best one, or one of a keyword
// (keywords/keyword_lookahead.h). Returns false when a graph failed or was stopped.
bool run(parakeet_context& context, parakeet_state& state, std::span<const float> samples,
         int encoder_threads, const CancelToken& cancel, const KeywordTrie& keywords,
         const TokenCallback& on_token);

// What the last run decoded, with times in hundredths of a second.
const std::vector<parakeet_token_data>& tokens(const parakeet_state& state);

const std::string& piece(const parakeet_context& context, int32_t id);
// All pieces that were in the file, by their ids.
std::vector<std::string> pieces(const parakeet_context& context, size_t vocabulary);

uint64_t memory_bytes(const parakeet_context& context);
uint64_t memory_bytes(const parakeet_state& state);

} // namespace voxgate::parakeet_internals

#pragma once

#include "backends/whisper/whisper_rules.h"
#include "backends/whisper/whisper_search.h"
#include "backends/whisper/whisper_window.h"

#include <ggml-backend.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct whisper_context;
struct whisper_context_params;
struct whisper_state;

// What the C API of whisper.cpp does not offer. whisper_internals.cpp compiles whisper.cpp itself and so
// reaches its private structs; a new version that moves their fields fails to compile there instead of
// misbehaving.

namespace voxgate {
class CallScope;
} // namespace voxgate

namespace voxgate::whisper_internals {

// A context over the weights of another one, which it keeps alive. The settings below then belong to one
// lane. Safe while other views are in use.
std::shared_ptr<whisper_context> view_of(std::shared_ptr<const whisper_context> whole,
                                         const whisper_context_params& params);

// Finds the heads that align text with audio, from the shape of the model.
void choose_alignment_heads(whisper_context& context);

void set_audio_context(whisper_state& state, int audio_context);

// The window of a state whose audio context is set, of which `audio` positions (20 ms) hold audio.
WhisperWindow window_of(const whisper_context& context, const whisper_state& state, int audio);

// The graphs that encode audio: convolution, encoder, and the keys and values for the decoder.
std::array<ggml_backend_sched_t, 3> audio_graphs(const whisper_state& state);

// Memory that holds something during a call only: what describes the graphs. It is filled from the beginning.
std::array<std::span<std::byte>, 4> scratch_memory(whisper_state& state);

// The attention cache for texts, which holds something during a call only. Empty on a GPU.
std::span<std::byte> text_cache(const whisper_state& state);

// The first row of the cache for texts that the batch writes.
uint32_t cache_head(const whisper_state& state);

// Tells the code of ours that whisper.cpp runs (whisper_seams.h) which call computes; null where none does.
void set_call(whisper_state& state, CallScope* call);

// Makes every graph of the state that runs on a CPU stop between two operations; null takes it back.
void set_graph_abort(whisper_state& state, ggml_abort_callback should_abort, void* user_data);

// True for the first distilled models, which were not taught to write times.
bool has_no_times(const whisper_context& context);

// What the decoder must know of a vocabulary.
SpecialTokens special_tokens(const whisper_context& context);

// The tokens with which a transcript begins: the prompt, the language, the task, and that it has no times.
struct DecoderPrompt {
  std::vector<int32_t> tokens;
  size_t transcript_start = 0; // index of the token that starts the transcript
};
DecoderPrompt decoder_prompt(const whisper_context& context, std::span<const int32_t> prompt,
                             const std::string& language, bool translate, bool times);

// Computes the spectrogram of all samples, and encodes one window of it that starts at `frame` (10 ms). False
// where the call was cancelled or the engine failed.
bool compute_spectrogram(whisper_context& context, whisper_state& state, std::span<const float> samples,
                         int threads);
bool encode_window(whisper_context& context, whisper_state& state, int frame, int threads);

// Reserves memory for this many tokens, of the prompt and of all texts together. Throws
// Failure{out_of_memory}.
void reserve_tokens(whisper_context& context, whisper_state& state, int tokens);

// The alignment scores of tokens as they are decoded, whose alignment need not decode them again then.
struct KeptScores {
  std::vector<int32_t> tokens; // of the prompt, and of the one text behind it
  std::vector<float> values;   // of each token and head, one for each position
};

// Whether scores are kept: on a GPU they would make each step slower, and so would many heads.
bool may_keep_scores(const whisper_context& context, const whisper_state& state);

// Computes the logits after a prompt, or after each extension of the texts so far; they stay until the next
// call. Throws Failure{inference_failed}, also where the call was cancelled.
struct PromptLogits {
  std::span<float> last;
  float no_speech_probability;
};
PromptLogits decode_prompt(whisper_context& context, whisper_state& state, const DecoderPrompt& prompt,
                           int threads, KeptScores* kept = nullptr);
// The probability of each language of the model, by its number, as `texts` texts begin, each of which may
// attend to another part of the window. Throws Failure{inference_failed}, also where the call was cancelled.
std::vector<std::vector<float>> language_probabilities(whisper_context& context, whisper_state& state,
                                                       size_t texts, int threads);
// `beside_known`: the extensions are those of texts beside a known one (SearchOptions::known), which is what
// was decoded before.
std::vector<std::span<float>> decode_extensions(whisper_context& context, whisper_state& state,
                                                std::span<const Extension> extensions, int position,
                                                int threads, bool beside_known, KeptScores* kept = nullptr);

// The natural log probability of each token of `text`, where it is all that is said after the prompt. Throws
// Failure{inference_failed}, also where the call was cancelled.
std::vector<float> score_text(whisper_context& context, whisper_state& state, const DecoderPrompt& prompt,
                              std::span<const int32_t> text, int threads, KeptScores* kept = nullptr);

// The position (20 ms, in the window that is encoded) at which each of these text tokens ends. Empty where
// the window is too short for an alignment. `kept`: what was kept of the tokens that were decoded last.
std::vector<int> align_text(whisper_context& context, whisper_state& state, std::span<const int32_t> text,
                            const std::string& language, bool translate, int positions, int threads,
                            KeptScores kept = {});

// All bytes of a text token; the C API's string ends at a zero byte.
const std::string& token_bytes(const whisper_context& context, int32_t id);

// The id of exactly these bytes, -1 when there is none; and the length of the longest text token.
int32_t find_token(const whisper_context& context, std::string_view bytes);
size_t longest_token(const whisper_context& context);

int language_count(const whisper_context& context);

uint64_t memory_bytes(const whisper_context& context);
uint64_t memory_bytes(const whisper_state& state);

// What the cache for texts may get beside that: for the longest prompt and the most beams.
uint64_t text_cache_growth(const whisper_context& context, const whisper_state& state);

} // namespace voxgate::whisper_internals

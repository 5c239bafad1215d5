#pragma once

#include <ggml-backend.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct whisper_context;
struct whisper_context_params;
struct whisper_state;

// What the C API of whisper.cpp does not offer. whisper_internals.cpp compiles whisper.cpp itself and so
// reaches its private structs; a new version that moves their fields fails to compile there instead of
// misbehaving.

namespace voxgate::whisper_internals {

// A context over the weights of another one, which it keeps alive. The settings below then belong to one
// lane. Safe while other views are in use.
std::shared_ptr<whisper_context> view_of(std::shared_ptr<const whisper_context> whole,
                                         const whisper_context_params& params);

// Sets whether the words of the following calls are aligned with the audio. The alignment heads follow from
// the shape of the model.
void use_alignment(whisper_context& context, bool aligned);

// Seeds the random generator of the first decoder, so that earlier calls do not show in later ones.
// whisper.cpp seeds only the others.
void reset_sampling(whisper_state& state);

// Clears what the last call left in the attention caches for audio. This is needed on a GPU, where positions
// are padded, whenever the audio context changes.
void forget_audio(whisper_state& state);

void set_audio_context(whisper_state& state, int audio_context);

// The graphs that encode audio: convolution, encoder, and the keys and values for the decoder.
std::array<ggml_backend_sched_t, 3> audio_graphs(const whisper_state& state);

// Makes every graph of the state that runs on a CPU stop between two operations; null takes it back.
void set_graph_abort(whisper_state& state, ggml_abort_callback should_abort, void* user_data);

bool uses_gpu(const whisper_context& context);

// All bytes of a text token; the C API's string ends at a zero byte.
const std::string& token_bytes(const whisper_context& context, int32_t id);

// The id of exactly these bytes, -1 when there is none; and the length of the longest text token.
int32_t find_token(const whisper_context& context, std::string_view bytes);
size_t longest_token(const whisper_context& context);

int language_count(const whisper_context& context);

uint64_t memory_bytes(const whisper_context& context);
uint64_t memory_bytes(const whisper_state& state);

} // namespace voxgate::whisper_internals

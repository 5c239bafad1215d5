#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <cstdint>
#include <span>
#include <vector>

namespace voxgate {

class CallScope;

// The parts of whisper.cpp's graphs that are ours; whisper_seams.h says where they stand and why. `call` is
// that of the state, null where none computes, as while a state is made.

// The positions (20 ms) that a graph makes room for.
int padded_positions(const CallScope* call, int positions);

// The places (position embeddings) of the positions that are encoded: those of the window of the call.
ggml_tensor* places(const CallScope* call, ggml_context* graph, ggml_tensor* of_all_positions, int positions);

// An attention to the audio, in which a key that stands for several positions counts as often.
ggml_tensor* attend_to_audio(const CallScope* call, ggml_context* graph, ggml_tensor* queries,
                             ggml_tensor* keys, ggml_tensor* values, float scale);

// The scores of these heads of a layer behind those of the layers before, which are null at first.
ggml_tensor* alignment_scores(ggml_context* graph, std::span<const uint32_t> heads, ggml_tensor* queries,
                              ggml_tensor* keys, int positions, ggml_tensor* before);

// The rows of the tokens from the first one on whose logits are wanted: `wanted` is not zero for it. Where
// that is not known, `wanted` is empty, and the last `most` rows are.
ggml_tensor* wanted_rows(ggml_context* graph, ggml_tensor* rows, std::span<const int8_t> wanted,
                         int64_t most);

// Writes the keys or values of a step into the rows of the cache that an input names. `cache` has `size` rows
// in each layer.
ggml_tensor* into_cache(ggml_context* graph, ggml_tensor* values, ggml_tensor* cache, uint32_t size,
                        int layer);

void read_logits(const ggml_tensor* logits, std::vector<float>& values);

// Fills the inputs that these functions made: the score offsets of the window or its parts, and the rows from
// `cache_head` on.
void fill_inputs(ggml_cgraph* graph, const CallScope& call);

} // namespace voxgate

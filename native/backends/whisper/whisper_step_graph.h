#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace voxgate {

// The graph of one step of the decoder for several lanes of a model (whisper_step_batcher.h). The products
// with the weights have a column for each lane. What each lane has of its own is here: it writes to its own
// cache, and attends to its own text and its own audio.

// A lane of the graph. A graph is kept for as long as nothing of this changes.
struct StepLane {
  ggml_tensor* text_keys;
  ggml_tensor* text_values;
  ggml_tensor* audio_keys;
  ggml_tensor* audio_values;
  const void* text_data; // a new cache may lie where the one before lay
  const void* audio_data;
  uint32_t size;     // rows of the cache for texts in each layer
  uint32_t rows;     // of them, that attention sees
  int64_t positions; // of the audio
  bool is_sparse;    // whether some of them count several times

  bool operator==(const StepLane&) const = default;
};

// large-v3 has 32 layers, with some 20 nodes for each of eight lanes.
inline constexpr size_t kMostNodesOfLanes = 8192;

void into_caches(ggml_context* graph, ggml_cgraph* nodes, std::span<const StepLane> lanes, ggml_tensor* keys,
                 ggml_tensor* values, int layer);

ggml_tensor* attend_to_texts(ggml_context* graph, std::span<const StepLane> lanes, ggml_tensor* queries,
                             int layer);
ggml_tensor* attend_to_audios(ggml_context* graph, std::span<const StepLane> lanes, ggml_tensor* queries,
                              float scale, int layer);

// The inputs of such a graph, of each lane: the row of its cache that the step writes, what is added to the
// scores of its text, and where its window is sparse to those of its audio, as 16-bit floats.
struct StepInputs {
  int64_t row;
  std::vector<uint16_t> text_mask;
  std::vector<uint16_t> audio_offsets;
};
void fill_inputs(ggml_cgraph* nodes, std::span<const StepLane> lanes, std::span<const StepInputs> inputs);

} // namespace voxgate

#pragma once

#include "backends/sensevoice/sensevoice_ctc.h"
#include "backends/sensevoice/sensevoice_weights.h"
#include "kernels/tile_ops.h"

#include <span>
#include <vector>

namespace voxgate {

// The same network as an encoder's graph of products, of operations that compute on AMX tiles (tile_ops.h).

// Says whether the tiles are made for this model: its width and depth divide into tiles, its matrices are
// q8_0 (the first one may be F16), and `max_positions` fit.
bool fits_tiles(const SenseVoiceWeights& weights, const SenseVoiceShape& shape, int max_positions);

struct TileGraph {
  ggml_tensor* heard;  // what the scores are computed of, packed
  ggml_tensor* scores; // the end of the graph
};

// Builds the graph from `input`, panels of features.
TileGraph build_tiles(ggml_context* context, const TileOps& ops, ggml_tensor* input,
                      const SenseVoiceWeights& weights, const SenseVoiceShape& shape, int positions);

// Rows of features as panels, the lanes behind the last row zeros.
std::vector<float> to_panels(std::span<const float> rows, int width);

// The channels of one position of a packed tensor.
void read_packed(std::span<const uint16_t> packed, int position, std::span<float> row);

// The best token of each position, of the scores that were computed. Throws Failure{inference_failed} where a
// logit is not a number.
std::vector<SenseVoicePeak> read_peaks(std::span<const float> scores, int vocabulary, int positions);

} // namespace voxgate

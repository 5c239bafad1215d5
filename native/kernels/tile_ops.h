#pragma once

#include <ggml.h>

#include <cstdint>

namespace voxgate {

// An encoder of SenseVoice on AMX tiles, whose operations hand each other what they compute in the layout in
// which the tiles take it. Between ggml's products every result would be turned into rows, written to memory
// a page apart, and read again to be rounded and turned back; that took half of the time.
//
// Positions lie in tiles of kTilePositions, and a position in a lane of each vector. All tensors are opaque
// rows of floats, one for each tile of positions unless said otherwise:
//
//   panel   floats: for each channel the positions of the tile
//   packed  bfloat16: channels in pairs, as an instruction takes its second operand
//   heard   queries, keys and values of all heads, in one row
//
// Lanes behind the last position hold numbers that reach no other lane. `user` is tile_user().
struct TileOps {
  // LayerNorm: panel, weight, bias. Gives packed, or a panel.
  ggml_custom_op_t norm;
  ggml_custom_op_t norm_panel;
  // Queries, keys, values: weight, bias, packed. Gives heard.
  ggml_custom_op_t hear;
  // Heard. Gives packed.
  ggml_custom_op_t attention;
  // What attention found, plus FSMN: weight, bias, packed, heard, kernel, and the panel that is carried
  // around the attention, if any. Gives a panel.
  ggml_custom_op_t remember;
  // The forward layer's two halves: weight, bias, packed gives packed; weight, bias, packed, panel gives a
  // panel.
  ggml_custom_op_t expand;
  ggml_custom_op_t contract;
  // Weight, bias, packed. Gives tile_scores_floats() floats: the first position's logits, then the state of
  // each part of the vocabulary.
  ggml_custom_op_t scores;
};

// Null where the processor or the operating system lets nothing compute on tiles. Callers outside of ggml's
// libraries find it as SpeechOps::tiles.
const TileOps* tile_ops();

constexpr int kTilePositions = 16;
constexpr int kTileChannels = 32;       // a tile's depth; all widths are multiples of it
constexpr int kMaxTileChannels = 8192;  // of which the working memory of a thread holds 32 rows of weights
constexpr int kMaxTilePositions = 2560; // whose scores of attention fit into the working memory of a thread
constexpr int kMaxTileTaps = 31;        // of FSMN's kernel
constexpr int kScoreParts = 16;         // of the vocabulary, of which threads take whole ones
constexpr float kTileEpsilon = 1e-5F;   // of LayerNorm

constexpr int64_t tiles_of(int64_t positions) {
  return (positions + kTilePositions - 1) / kTilePositions;
}
constexpr int64_t panel_floats(int64_t channels) {
  return channels * kTilePositions;
}
constexpr int64_t packed_floats(int64_t channels) {
  return (channels + kTileChannels - 1) / kTileChannels * kTileChannels * kTilePositions / 2;
}

// Where the parts of `heard` begin, in floats.
struct HeardLayout {
  HeardLayout(int64_t width, int64_t positions)
      : pairs((tiles_of(positions) + 1) / 2), keys(tiles_of(positions) * packed_floats(width)),
        values(2 * keys), rows(values + pairs * 2 * packed_floats(width)),
        floats(rows + tiles_of(positions) * panel_floats(width)) {}

  int64_t pairs;  // of tiles of positions
  int64_t keys;   // queries come first
  int64_t values; // in bfloat16, for attention
  int64_t rows;   // the values as a panel, for FSMN
  int64_t floats;
};

// The state of a part of the vocabulary, for a tile of positions: the highest logit, its token (an int32 in
// each float), and the sum of the exponentials below the highest.
struct ScoreState {
  float highest[kTilePositions];
  int32_t token[kTilePositions];
  float sum[kTilePositions];
};
constexpr int64_t first_logits_floats(int64_t vocabulary) {
  return (vocabulary + 15) / 16 * 16;
}
constexpr int64_t tile_scores_floats(int64_t vocabulary, int64_t positions) {
  return first_logits_floats(vocabulary) +
         kScoreParts * tiles_of(positions) * static_cast<int64_t>(sizeof(ScoreState) / sizeof(float));
}

inline void* tile_user(int positions, int heads) {
  const uintptr_t both = static_cast<uintptr_t>(positions) | static_cast<uintptr_t>(heads) << 16;
  return reinterpret_cast<void*>(both); // NOLINT(performance-no-int-to-ptr): as speech_user()
}

} // namespace voxgate

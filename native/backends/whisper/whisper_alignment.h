#pragma once

#include <whisper.h>

#include <cstddef>
#include <span>
#include <vector>

namespace voxgate {

struct WhisperShape {
  int vocabulary;
  int audio_layers;
  int text_layers;
};

// The alignment heads that OpenAI published for the model of this shape; WHISPER_AHEADS_N_TOP_MOST for
// others.
whisper_alignment_heads_preset published_heads(const WhisperShape& shape);

// How well each token fits each position of the audio (20 ms), in the cross attention of some heads: products
// of queries and keys before the softmax. `values` has the positions of a token one after the other, then its
// tokens, then the heads.
struct AlignmentScores {
  std::span<const float> values;
  size_t heads;
  size_t tokens;
  size_t positions;
  float scale; // of the softmax
};

// The median filter is narrower than this.
inline constexpr size_t kLeastAlignedPositions = 8;

// The position at which each text token ends, which never falls. It is the one at which the path of dynamic
// time warping goes on to the next token. As in OpenAI's timing.py, function find_alignment.
// `used`: the positions that hold audio, at least kLeastAlignedPositions. `before`: the tokens before the one
// that ends the prompt. The result has a value for each token between the prompt and the token that ends the
// text.
std::vector<int> token_ends(const AlignmentScores& scores, size_t used, size_t before);

} // namespace voxgate

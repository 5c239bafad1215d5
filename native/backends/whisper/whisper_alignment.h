#pragma once

#include <whisper.h>

namespace voxgate {

struct WhisperShape {
  int vocabulary = 0;
  int audio_layers = 0;
  int text_layers = 0;
};

// The attention heads that were found to follow the audio in the published model of this shape;
// WHISPER_AHEADS_N_TOP_MOST (the last layers, all heads) for a shape that is none of theirs.
whisper_alignment_heads_preset published_heads(const WhisperShape& shape);

} // namespace voxgate

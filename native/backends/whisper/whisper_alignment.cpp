#include "backends/whisper/whisper_alignment.h"

namespace voxgate {
namespace {

constexpr int kEnglishVocabulary = 51864;
constexpr int kVocabularyOfV3 = 51866;

} // namespace

whisper_alignment_heads_preset published_heads(const WhisperShape& shape) {
  const bool english = shape.vocabulary == kEnglishVocabulary;
  const bool v3 = shape.vocabulary == kVocabularyOfV3;
  if (shape.audio_layers == 32 && shape.text_layers == 4 && v3)
    return WHISPER_AHEADS_LARGE_V3_TURBO;
  if (shape.audio_layers != shape.text_layers)
    return WHISPER_AHEADS_N_TOP_MOST; // distilled: fewer text layers than the model the heads were found in
  switch (shape.audio_layers) {
  case 4:
    return english ? WHISPER_AHEADS_TINY_EN : WHISPER_AHEADS_TINY;
  case 6:
    return english ? WHISPER_AHEADS_BASE_EN : WHISPER_AHEADS_BASE;
  case 12:
    return english ? WHISPER_AHEADS_SMALL_EN : WHISPER_AHEADS_SMALL;
  case 24:
    return english ? WHISPER_AHEADS_MEDIUM_EN : WHISPER_AHEADS_MEDIUM;
  case 32: // v1 and v2 have the same shape; v2 is the one in use
    return v3 ? WHISPER_AHEADS_LARGE_V3 : WHISPER_AHEADS_LARGE_V2;
  default:
    return WHISPER_AHEADS_N_TOP_MOST;
  }
}

} // namespace voxgate

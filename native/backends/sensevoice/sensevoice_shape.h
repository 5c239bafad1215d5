#pragma once

#include "models/gguf_file.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

// What the header of a SenseVoice file says: the shape of the network, the rows of its query table, its
// vocabulary. All of it is checked here, so that the code that computes with these numbers may trust them.

namespace voxgate {

// Before the speech come four positions, each asking the model for one thing by a row of its query table.
inline constexpr int kSenseVoiceQueries = 4;
inline constexpr int kSenseVoiceQueryRows = 16;

struct SenseVoiceLanguage {
  std::string code;
  int32_t query = 0; // row of the query table
  int32_t token = 0; // what the model answers
};

struct SenseVoiceShape {
  int blocks = 0; // with the first one, which takes the features to the width of the others
  int tp_blocks = 0;
  int width = 0;
  int input = 0; // mels * stack
  int heads = 0;
  int hidden = 0;
  int kernel = 0;
  int mels = 0;
  int stack = 0;
  int stride = 0;
  int vocabulary = 0;

  int32_t auto_query = 0;
  int32_t itn_query = 0;
  int32_t plain_query = 0;
  std::vector<SenseVoiceLanguage> languages;

  int frame_ms() const { return 10 * stride; }
};

struct SenseVoiceVocabulary {
  std::vector<std::string> pieces; // SentencePiece spelling
  std::vector<bool> spoken;        // false for tags, the unknown piece and the like
  int32_t blank = 0;
  int32_t no_speech = 0;
};

SenseVoiceShape read_sensevoice_shape(const GgufFile& file);
// Also completes the languages of the shape with their tokens.
SenseVoiceVocabulary read_sensevoice_vocabulary(const GgufFile& file, SenseVoiceShape& shape);

} // namespace voxgate

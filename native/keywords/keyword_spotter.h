#pragma once

#include "keywords/keyword_trie.h"

#include <functional>

namespace voxgate {

// What a network with CTC says about a chunk, frame by frame, as far as the search below asks.
struct CtcFrames {
  std::vector<int32_t> best; // the best token of each frame
  int32_t blank = 0;
  // How far the log probability of a token lies below that of the best one, 0 or more.
  std::function<float(int frame, int32_t token)> below_best;
  // False for a token that goes on with a word.
  std::function<bool(int32_t token)> begins_word;
};

struct SpottedToken {
  int32_t token = 0; // or the blank
  float below_best = 0;
};

// A keyword, with a token for each frame from `begin` on.
struct SpottedKeyword {
  int begin = 0;
  std::vector<SpottedToken> frames;
};

// Finds keywords in the frames from `first` on: those that do not overlap and have the most credit together.
// The best path to each node is followed through the frames, as the CTC word spotter of NeMo does
// (Andrusenko et al. 2024, arXiv 2406.07096). A keyword takes whole runs of a best token, and begins where a
// word of the best text does, so that no piece of another word is left beside it. In silence it begins and
// ends apart from the words around, whose tokens are loud in the frames beside them.
std::vector<SpottedKeyword> spot_keywords(const KeywordTrie& trie, const CtcFrames& frames, int first);

} // namespace voxgate

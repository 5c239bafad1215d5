#pragma once

#include "keywords/keyword_trie.h"

#include <memory>
#include <optional>

namespace voxgate {

// A token-and-duration transducer (Xu et al. 2023, arXiv 2304.06795) as the search below sees it. All of its
// functions that return false have failed or were stopped, and so has the call of the search.
class Transducer {
 public:
  struct Scores {
    std::vector<float> logits; // of the tokens, with the blank
    int duration = 0;          // frames, the most probable number
  };
  using Memory = std::vector<float>;

  virtual ~Transducer() = default;
  virtual bool score(int frame, Scores& scores) = 0; // after what was said
  virtual bool say(int32_t token) = 0;
  // What was said, as the model remembers it.
  virtual Memory memory() = 0;
  virtual void recall(const Memory& memory) = 0;
};

// Where a transducer is in its audio.
struct TransducerPlace {
  int frame = 0;
  int said = 0; // tokens of this frame that took no time
};

struct TransducerShape {
  int frames = 0;
  int32_t blank = 0;
  int tokens_per_frame = 0; // the most that take no time
};

// Looks for keywords ahead of a greedy decoder. At each step it follows the paths of the tree that begin
// there, through the model itself, which hears what a path says. The decoder is led along the path with the
// most credit, if one reaches the end of a keyword, unless a keyword that begins later, while the first one
// is said, has more: then the model's own choice stands. The search leaves the decoder as it was, so paths
// that lead nowhere change nothing.
class KeywordLookahead {
 public:
  // The steps that the search may compute beyond the decoder's own, for a chunk; then no keyword is found.
  static constexpr int kMaxSteps = 2048;
  // The children of a node that are followed at a step, those with the most credit.
  static constexpr size_t kMaxBranches = 4;

  KeywordLookahead(const KeywordTrie& trie, Transducer& transducer, const TransducerShape& shape)
      : trie_(trie), transducer_(transducer), shape_(shape) {}

  // The token to choose at this step, whose scores are given, or the blank; nothing after a failure.
  std::optional<int32_t> choose(TransducerPlace place, const Transducer::Scores& scores);

 private:
  struct Path {
    TransducerPlace place;
    int node = 0;
    float credit = 0;
    std::shared_ptr<const Transducer::Memory> memory; // before `token`
    int32_t token = 0;                                // still to be said, or blank
    std::vector<int32_t> choices;
  };
  struct Found {
    float credit = 0;
    TransducerPlace end;
    std::vector<int32_t> choices; // one a step; empty where no keyword was found
  };

  bool find(TransducerPlace place, const Transducer::Scores& scores, Found& found);
  bool is_better_later(TransducerPlace place, Transducer::Scores scores, const Found& found, bool& better);
  void branch(const Path& path, const Transducer::Scores& scores, std::vector<Path>& open, Found& found);
  TransducerPlace after(TransducerPlace place, int32_t token, int duration) const;
  int32_t best(const Transducer::Scores& scores) const;
  bool score(int frame, Transducer::Scores& scores);

  const KeywordTrie& trie_;
  Transducer& transducer_;
  TransducerShape shape_;
  std::vector<int32_t> led_; // choices that were found, the last one first
  int steps_ = 0;
};

} // namespace voxgate

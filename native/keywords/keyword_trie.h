#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Contextual biasing ("hotwords"): the words that a client expects, as sequences of tokens in a tree of their
// prefixes.
//
// A path along the tree has a credit: kKeywordBonus for each token of it, less how far the log probability of
// each lay below that of the best token. It ends where the credit is used up, so no token may cost more than
// the tokens up to it have earned. Only a path that reaches the end of a keyword changes a text; what any
// other path was given is taken back with it.

namespace voxgate {

// Nats a token; the default of sherpa-onnx's hotwords_score.
inline constexpr float kKeywordBonus = 1.5F;

class KeywordTrie {
 public:
  static constexpr int kRoot = 0;
  static constexpr size_t kMaxNodes = 16384;

  struct Child {
    int32_t token = 0;
    int node = 0;
  };

  // Returns false, and adds nothing, where the sequence is empty or the tree would have too many nodes.
  bool add(std::span<const int32_t> tokens);

  bool empty() const { return children(kRoot).empty(); }
  std::span<const Child> children(int node) const { return nodes_[static_cast<size_t>(node)].children; }
  // True where a keyword ends; a longer one may go on.
  bool ends(int node) const { return nodes_[static_cast<size_t>(node)].ends; }
  // The token that led to the node, which is not the root.
  int32_t token(int node) const { return nodes_[static_cast<size_t>(node)].token; }

 private:
  struct Node {
    int32_t token = -1;
    bool ends = false;
    std::vector<Child> children; // sorted by token
  };

  std::vector<Node> nodes_{1};
};

} // namespace voxgate

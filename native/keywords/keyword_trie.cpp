#include "keywords/keyword_trie.h"

#include <algorithm>

namespace voxgate {

bool KeywordTrie::add(std::span<const int32_t> tokens) {
  if (tokens.empty() || nodes_.size() + tokens.size() > kMaxNodes)
    return false;
  int node = kRoot;
  for (const int32_t token : tokens) {
    auto& children = nodes_[static_cast<size_t>(node)].children;
    const auto place = std::ranges::lower_bound(children, token, {}, &Child::token);
    if (place != children.end() && place->token == token) {
      node = place->node;
      continue;
    }
    node = static_cast<int>(nodes_.size());
    children.insert(place, {token, node});
    nodes_.push_back({token, false, {}}); // ends the life of `children`
  }
  nodes_[static_cast<size_t>(node)].ends = true;
  return true;
}

} // namespace voxgate

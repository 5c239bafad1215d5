#pragma once

#include "keywords/keyword_trie.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace voxgate {

// Writes words with the pieces of a SentencePiece vocabulary, in which "▁" stands for a space.
class Speller {
 public:
  // Pieces with an id for which `written` is false spell nothing. Of equal pieces the first one counts.
  template <typename Written> Speller(const std::vector<std::string>& pieces, const Written& written) {
    for (size_t i = 0; i < pieces.size(); ++i)
      if (written(i))
        ids_.emplace(pieces[i], static_cast<int32_t>(i));
    for (const auto& [piece, id] : ids_)
      longest_ = std::max(longest_, piece.size());
  }

  // The keywords, in UTF-8, each in all of its spellings. A keyword for which the vocabulary has no pieces is
  // not in the tree. The last tree is kept, because the chunks of a request have the same keywords.
  const KeywordTrie& spell(const std::vector<std::string>& keywords);

  // Each spelling of one word or phrase, at most six: with the pieces that merging gives (byte pair encoding,
  // where a piece with a smaller id was merged before), with the longest piece first, and so with one
  // character of Han or Kana at a time. What begins with such a character may also stand without a space
  // before it.
  std::vector<std::vector<int32_t>> spellings(std::string_view text) const;

 private:
  std::vector<int32_t> merged(std::string_view spaced) const;
  std::vector<int32_t> longest_first(std::string_view spaced, bool one_by_one) const;
  // -1 where there is no such piece.
  int32_t id(std::string_view piece) const;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  size_t longest_ = 0; // bytes
  std::vector<std::string> keywords_;
  KeywordTrie trie_; // of those
};

// True for a piece that begins with Han or Kana, which are written without spaces.
bool begins_unspaced(std::string_view text);

} // namespace voxgate

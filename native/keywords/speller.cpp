#include "keywords/speller.h"

#include "models/sentencepiece.h"

#include <limits>

namespace voxgate {
namespace {

// Of the character that begins here; the text is UTF-8, and a byte that fits nowhere counts as a character.
size_t character_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U)
    ++bytes;
  return bytes;
}

uint32_t code_point(std::string_view text) {
  const size_t bytes = character_bytes(text);
  uint32_t code = static_cast<unsigned char>(text[0]);
  if (bytes > 1)
    code &= 0x7FU >> bytes;
  for (size_t i = 1; i < bytes; ++i)
    code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  return code;
}

size_t unspaced_characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); text.remove_prefix(character_bytes(text)))
    count += begins_unspaced(text) ? 1 : 0;
  return count;
}

} // namespace

bool begins_unspaced(std::string_view text) {
  if (text.empty())
    return false;
  const uint32_t code = code_point(text);
  const auto within = [code](uint32_t first, uint32_t last) { return code >= first && code <= last; };
  return within(0x3005, 0x3007) || within(0x3040, 0x30FF) || within(0x3400, 0x9FFF) ||
         within(0xF900, 0xFAFF) || within(0x20000, 0x3FFFF);
}

int32_t Speller::id(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found != ids_.end() ? found->second : -1;
}

std::vector<int32_t> Speller::merged(std::string_view spaced) const {
  struct Part {
    std::string_view text;
    int32_t with_next = -1; // the piece that this part and the next one are together
  };
  std::vector<Part> parts;
  for (size_t at = 0; at < spaced.size();) {
    const size_t bytes = character_bytes(spaced.substr(at));
    parts.push_back({spaced.substr(at, bytes)});
    at += bytes;
  }
  const auto look_ahead = [&](size_t i) {
    auto& part = parts[i];
    // Neighbors lie side by side in the text.
    part.with_next =
        i + 1 < parts.size() ? id({part.text.data(), part.text.size() + parts[i + 1].text.size()}) : -1;
  };
  for (size_t i = 0; i < parts.size(); ++i)
    look_ahead(i);
  const auto rank = [](const Part& part) {
    return part.with_next >= 0 ? part.with_next : std::numeric_limits<int32_t>::max();
  };
  while (!parts.empty()) {
    const auto first = std::ranges::min_element(parts, {}, rank);
    if (first->with_next < 0)
      break;
    const auto at = static_cast<size_t>(first - parts.begin());
    first->text = {first->text.data(), first->text.size() + parts[at + 1].text.size()};
    parts.erase(first + 1);
    look_ahead(at);
    if (at > 0)
      look_ahead(at - 1);
  }
  std::vector<int32_t> ids;
  ids.reserve(parts.size());
  for (const auto& part : parts)
    ids.push_back(id(part.text));
  return ids;
}

std::vector<int32_t> Speller::longest_first(std::string_view spaced, bool one_by_one) const {
  std::vector<int32_t> ids;
  while (!spaced.empty()) {
    int32_t found = -1;
    size_t bytes = std::min(longest_, spaced.size());
    for (; bytes > 0; --bytes) {
      const auto piece = spaced.substr(0, bytes);
      found = one_by_one && unspaced_characters(piece) > 1 ? -1 : id(piece);
      if (found >= 0)
        break;
    }
    ids.push_back(found);
    if (found < 0)
      break;
    spaced.remove_prefix(bytes);
  }
  return ids;
}

std::vector<std::vector<int32_t>> Speller::spellings(std::string_view text) const {
  std::string spaced(kPieceSpace);
  for (const char c : text)
    c == ' ' ? spaced += kPieceSpace : spaced += c;
  std::vector<std::vector<int32_t>> all;
  const auto note = [&](std::vector<int32_t> ids) {
    if (!ids.empty() && std::ranges::find(ids, -1) == ids.end() && std::ranges::find(all, ids) == all.end())
      all.push_back(std::move(ids));
  };
  const bool may_stand_alone = begins_unspaced(text);
  for (const size_t skipped : {size_t{0}, kPieceSpace.size()}) {
    if (skipped > 0 && !may_stand_alone)
      break;
    const auto written = std::string_view(spaced).substr(skipped);
    note(merged(written));
    note(longest_first(written, false));
    if (unspaced_characters(written) > 0)
      note(longest_first(written, true));
  }
  return all;
}

const KeywordTrie& Speller::spell(const std::vector<std::string>& keywords) {
  if (keywords == keywords_)
    return trie_;
  keywords_.clear(); // so that a failure leaves nothing that does not belong together
  trie_ = {};
  for (const auto& keyword : keywords)
    for (const auto& ids : spellings(keyword))
      trie_.add(ids);
  keywords_ = keywords;
  return trie_;
}

} // namespace voxgate

#pragma once

#include <string>
#include <string_view>

// How the pieces of a SentencePiece vocabulary are written.

namespace voxgate {

inline constexpr std::string_view kPieceSpace = "\xE2\x96\x81"; // "▁" stands for a space

// What a piece spells, in UTF-8.
inline std::string piece_text(std::string_view piece) {
  std::string text;
  for (size_t at = piece.find(kPieceSpace); at != piece.npos; at = piece.find(kPieceSpace)) {
    text.append(piece, 0, at).push_back(' ');
    piece.remove_prefix(at + kPieceSpace.size());
  }
  return text.append(piece);
}

// "zh" of "<|zh|>"; empty when the piece is no tag.
inline std::string_view tag_name(std::string_view piece) {
  const bool is_tag = piece.size() > 4 && piece.starts_with("<|") && piece.ends_with("|>");
  return is_tag ? piece.substr(2, piece.size() - 4) : std::string_view{};
}

} // namespace voxgate

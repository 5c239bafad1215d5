#include "backends/parakeet/parakeet_text.h"

namespace voxgate {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81"; // SentencePiece's mark for a space

} // namespace

bool is_parakeet_control(std::string_view piece) {
  return piece == "<unk>" || piece == "<pad>" || piece == "<s>" || piece == "</s>" ||
         (piece.size() > 4 && piece.starts_with("<|") && piece.ends_with("|>"));
}

std::string parakeet_piece_text(std::string_view piece) {
  if (is_parakeet_control(piece))
    return {};
  std::string text;
  for (size_t at = piece.find(kSpace); at != piece.npos; at = piece.find(kSpace)) {
    text.append(piece, 0, at).push_back(' ');
    piece.remove_prefix(at + kSpace.size());
  }
  return text.append(piece);
}

} // namespace voxgate

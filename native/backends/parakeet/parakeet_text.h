#pragma once

#include <string>
#include <string_view>

namespace voxgate {

// What a piece of the vocabulary spells, in UTF-8: "▁" stands for a space, and pieces like <unk>, <pad> and
// <|endoftext|> spell nothing.
std::string parakeet_piece_text(std::string_view piece);

// True for a piece that spells nothing.
bool is_parakeet_control(std::string_view piece);

} // namespace voxgate

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace voxgate {

// The last bytes of a long prompt, from the start of a UTF-8 character: the decoder uses the last tokens.
std::string_view prompt_tail(std::string_view prompt);

// The tokens whisper.cpp's own tokenizer would make of a prompt: words as GPT-2 splits them, in each the
// longest known piece first. Its own is not used because it matches with std::regex, which recurses for every
// character, and tries pieces of any length, which takes seconds for a long run without spaces (any Chinese
// prompt is one).
//
// `find` gives the id of a piece, or a negative number.
std::vector<int32_t> tokenize_prompt(std::string_view prompt, size_t longest_piece,
                                     const std::function<int32_t(std::string_view)>& find);

} // namespace voxgate

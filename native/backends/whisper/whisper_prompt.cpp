#include "backends/whisper/whisper_prompt.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr size_t kMaxPromptBytes = 4096; // far above the 224 tokens that are used

enum class Kind { space, letter, digit, other };

// By ASCII, as in the C locale; the bytes of other scripts are `other`.
Kind kind_of(char c) {
  if (c == ' ' || (c >= '\t' && c <= '\r'))
    return Kind::space;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
    return Kind::letter;
  return c >= '0' && c <= '9' ? Kind::digit : Kind::other;
}

size_t run_end(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && kind_of(text[end]) == kind_of(text[begin]))
    ++end;
  return end;
}

// Length of the first word, which is a contraction, or a run of characters of one kind with at most one space
// in front, or a run of spaces. The last of several spaces belongs to the word that follows them.
size_t word_length(std::string_view text) {
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(contraction))
      return contraction.size();
  }
  const size_t start = text[0] == ' ' ? 1 : 0;
  if (start < text.size() && kind_of(text[start]) != Kind::space)
    return run_end(text, start);
  const size_t spaces = run_end(text, 0);
  return spaces < text.size() && spaces > 1 ? spaces - 1 : spaces;
}

} // namespace

std::string_view prompt_tail(std::string_view prompt) {
  if (prompt.size() > kMaxPromptBytes)
    prompt.remove_prefix(prompt.size() - kMaxPromptBytes);
  while (!prompt.empty() && (static_cast<unsigned char>(prompt.front()) & 0xC0) == 0x80)
    prompt.remove_prefix(1);
  return prompt;
}

std::vector<int32_t> tokenize_prompt(std::string_view prompt, size_t longest_piece,
                                     const std::function<int32_t(std::string_view)>& find) {
  std::vector<int32_t> tokens;
  while (!prompt.empty()) {
    auto word = prompt.substr(0, word_length(prompt));
    prompt.remove_prefix(word.size());
    while (!word.empty()) {
      size_t length = std::min(word.size(), longest_piece);
      int32_t id = -1;
      while (length > 0 && (id = find(word.substr(0, length))) < 0)
        --length;
      if (id >= 0)
        tokens.push_back(id);
      word.remove_prefix(std::max<size_t>(length, 1));
    }
  }
  return tokens;
}

} // namespace voxgate

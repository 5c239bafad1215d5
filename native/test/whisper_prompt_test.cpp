#include "harness.h"

#include "backends/whisper/whisper_prompt.h"

using namespace voxgate;
using namespace voxgate::test;

TEST("whisper: prompts are split into words as whisper.cpp does it") {
  std::vector<std::string> words;
  const auto split = [&words](std::string_view text) {
    words.clear();
    tokenize_prompt(text, 1000, [&words](std::string_view word) {
      words.emplace_back(word);
      return 1;
    });
    return words;
  };
  using Words = std::vector<std::string>;
  CHECK(split("It's 12 o'clock!") == (Words{"It", "'s", " 12", " o", "'", "clock", "!"}));
  CHECK(split("a  b\nc \n d ") == (Words{"a", " ", " b", "\n", "c", " \n", " d", " "}));
  CHECK(split("\xE4\xBD\xA0\xE5\xA5\xBD ok") == (Words{"\xE4\xBD\xA0\xE5\xA5\xBD", " ok"}));
  CHECK(split("").empty());
  const auto known = [](std::string_view piece) { return piece == "ab" ? 1 : piece == "a" ? 2 : -1; };
  CHECK(tokenize_prompt("aba-ab", 8, known) == (std::vector<int32_t>{1, 2, 1}));
}

TEST("whisper: of a long prompt the last 4 KiB are used, from the start of a character") {
  const std::string longest(4096, 'a');
  CHECK(prompt_tail(longest) == longest);
  CHECK(prompt_tail("b" + longest) == longest);
  CHECK(prompt_tail("\xC3\xA9" + longest.substr(1)) == longest.substr(1)); // its second byte would be first
}

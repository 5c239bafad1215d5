#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace voxgate {

// The tokens of a vocabulary that have a meaning of their own. Those of text are below `end_of_text`, and
// those of times (0 s, 0.02 s ... 30 s) are `first_time` and above.
struct SpecialTokens {
  int32_t end_of_text = 0;
  int32_t first_time = 0;
  int32_t space = -1;         // -1: there is none
  std::vector<int32_t> never; // of prompts, languages and tasks, which no text has
};

// Which tokens may come next, by the rules of OpenAI's decoding.py: SuppressBlank, SuppressTokens and
// ApplyTimestampRules.
class TokenRules {
 public:
  struct Options {
    bool times = true;
    int last_time = 1500; // the end of the audio in steps of 20 ms
  };

  TokenRules(SpecialTokens special, Options options);

  // Sets the logits of tokens that may not follow `said` to minus infinity.
  void apply(std::span<const int32_t> said, std::span<float> logits) const;

  bool has_times() const { return options_.times; }
  bool is_time(int32_t token) const { return token >= special_.first_time; }
  const SpecialTokens& special() const { return special_; }

 private:
  void apply_times(std::span<const int32_t> said, std::span<float> logits) const;

  SpecialTokens special_;
  Options options_;
};

} // namespace voxgate

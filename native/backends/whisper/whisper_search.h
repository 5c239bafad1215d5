#pragma once

#include "backends/whisper/whisper_rules.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace voxgate {

// True when the last 32 tokens or more are the same ones again and again, eight times or more. The decoder
// has no way out of that but the end of its room for tokens.
bool is_loop(std::span<const int32_t> tokens);

// A text as far as it is decoded.
struct Hypothesis {
  std::vector<int32_t> tokens; // without the end of the text
  std::vector<float> logprobs; // of each token
  float end_logprob = 0;       // of the end, once it is finished
  double sum = 0;              // of all of these
  bool finished = false;

  // The mean log probability, over the tokens and the end.
  double score() const { return sum / static_cast<double>(tokens.size() + 1); }
};

// A token that may come next.
struct Choice {
  int32_t token;
  float logprob;
};

// What is probable at each token of a text, the best first, which is its own. The last one is its end.
using Choices = std::vector<std::vector<Choice>>;

struct SearchOptions {
  // With a temperature of 0 this many texts are followed side by side (beam search); 1 is greedy decoding.
  // Above 0 this many texts are drawn at random.
  int beams = 1;
  float temperature = 0;
  int most_tokens = 224;
  // People say no more tokens than this in the time: beam search follows no loop beyond it, and nothing that
  // is much longer than a text that ended.
  int most_tokens_of_loop = 0;
  uint32_t seed = 0;
  // Where a greedy search keeps so many choices at each token of its text; none where that has no end.
  struct Kept {
    Choices* choices = nullptr;
    size_t count = 0;
  };
  Kept kept = {};
  // What an earlier search kept. Beam search then looks for a more probable text beside that one, of which
  // nothing is computed again. Null where there is none.
  const Choices* known = nullptr;
};

// The hypothesis `parent` of the step before goes on with `token`, its token number `at`. Beside a known text
// the hypotheses are counted from 1, and 0 is the known text as far as it has tokens before that one.
struct Extension {
  size_t parent;
  int32_t token;
  size_t at;
};

// Computes the logits after each extension, as rows that may be written to until the next call.
using Extend = std::function<std::vector<std::span<float>>(std::span<const Extension>)>;

// The best text that the search finds: BeamSearchDecoder and GreedyDecoder of OpenAI's decoding.py, ranked by
// the mean log probability. `first`: the logits after the prompt. Throws Failure{repetition} where beam
// search found nothing but loops. No text has no tokens: the known one has the highest score. With a known
// text there is no `first`.
Hypothesis search(const TokenRules& rules, const SearchOptions& options, std::span<float> first,
                  const Extend& extend);

} // namespace voxgate

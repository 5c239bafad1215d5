#include "backends/whisper/whisper_search.h"

#include "backends/whisper/whisper_logits.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace voxgate {
namespace {

struct Candidate {
  size_t parent;
  int32_t token;
  float logprob;
  double sum;
};

void take(Hypothesis& hypothesis, const Candidate& candidate, int32_t end_of_text) {
  hypothesis.sum = candidate.sum;
  hypothesis.finished = candidate.token == end_of_text;
  if (hypothesis.finished)
    return;
  hypothesis.tokens.push_back(candidate.token);
  hypothesis.logprobs.push_back(candidate.logprob);
}

// The `count` most probable tokens, the best first; of two that are equal the lower one comes first.
std::vector<Candidate> best_of(std::span<const float> logprobs, size_t parent, double sum, size_t count) {
  std::vector<Candidate> best;
  for (size_t token = 0; token < logprobs.size(); ++token) {
    const float logprob = logprobs[token];
    if (std::isinf(logprob) || (best.size() == count && logprob <= best.back().logprob))
      continue;
    if (best.size() == count)
      best.pop_back();
    const auto at = std::find_if(best.begin(), best.end(),
                                 [logprob](const Candidate& other) { return other.logprob < logprob; });
    best.insert(at, {parent, static_cast<int32_t>(token), logprob, sum + static_cast<double>(logprob)});
  }
  return best;
}

class BeamSearch {
 public:
  BeamSearch(const TokenRules& rules, const SearchOptions& options)
      : rules_(rules), beams_(static_cast<size_t>(options.beams)) {}

  // The extensions that are followed; empty when the search is over.
  std::vector<Extension> step(std::span<const std::span<float>> rows) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < live_.size(); ++i) {
      rules_.apply(live_[i].tokens, rows[i]);
      log_softmax(rows[i], rows[i]);
      std::ranges::copy(best_of(rows[i], i, live_[i].sum, beams_ + 1), std::back_inserter(candidates));
    }
    std::ranges::stable_sort(candidates, std::greater(), &Candidate::sum);
    std::vector<Hypothesis> next;
    std::vector<Extension> extensions;
    for (const auto& candidate : candidates) {
      auto hypothesis = live_[candidate.parent];
      take(hypothesis, candidate, rules_.special().end_of_text);
      if (hypothesis.finished) {
        finished_.push_back(std::move(hypothesis));
        continue;
      }
      next.push_back(std::move(hypothesis));
      extensions.push_back({candidate.parent, candidate.token});
      if (next.size() == beams_)
        break;
    }
    if (!next.empty())
      live_ = std::move(next);
    return finished_.size() >= beams_ ? std::vector<Extension>() : extensions;
  }

  Hypothesis best() {
    auto& all = finished_.empty() ? live_ : finished_;
    return *std::ranges::max_element(all, {}, &Hypothesis::score);
  }

 private:
  const TokenRules& rules_;
  size_t beams_;
  std::vector<Hypothesis> live_{1};
  std::vector<Hypothesis> finished_;
};

class Sampling {
 public:
  Sampling(const TokenRules& rules, const SearchOptions& options)
      : rules_(rules), options_(options), random_(options.seed), all_(static_cast<size_t>(options.beams)) {}

  std::vector<Extension> step(std::span<const std::span<float>> rows) {
    if (!live_.empty())
      return draw(rows, [](size_t live) { return live; });
    live_.resize(all_.size());
    std::iota(live_.begin(), live_.end(), 0);
    return draw(rows, [](size_t) { return size_t{0}; }); // all begin with the one row after the prompt
  }

  Hypothesis best() { return *std::ranges::max_element(all_, {}, &Hypothesis::score); }

 private:
  template <typename RowOf>
  std::vector<Extension> draw(std::span<const std::span<float>> rows, RowOf row_of) {
    std::vector<size_t> next;
    std::vector<Extension> extensions;
    for (size_t i = 0; i < live_.size(); ++i) {
      Hypothesis& hypothesis = all_[live_[i]];
      const size_t row = row_of(i);
      std::vector<float> logprobs(rows[row].begin(), rows[row].end());
      for (float& logit : logprobs)
        logit /= options_.temperature;
      rules_.apply(hypothesis.tokens, logprobs);
      log_softmax(logprobs, logprobs);
      const int32_t token = drawn(logprobs);
      const float logprob = logprobs[static_cast<size_t>(token)];
      take(hypothesis, {row, token, logprob, hypothesis.sum + static_cast<double>(logprob)},
           rules_.special().end_of_text);
      if (hypothesis.finished)
        continue;
      extensions.push_back({row, token});
      next.push_back(live_[i]);
    }
    live_ = std::move(next);
    return extensions;
  }

  int32_t drawn(std::span<const float> logprobs) {
    double left = std::uniform_real_distribution<double>(0, 1)(random_);
    size_t last = 0;
    for (size_t token = 0; token < logprobs.size(); ++token) {
      if (std::isinf(logprobs[token]))
        continue;
      last = token;
      left -= std::exp(static_cast<double>(logprobs[token]));
      if (left <= 0)
        break;
    }
    return static_cast<int32_t>(last);
  }

  const TokenRules& rules_;
  SearchOptions options_;
  std::mt19937 random_;
  std::vector<Hypothesis> all_;
  std::vector<size_t> live_; // indices in all_
};

template <typename Steps>
Hypothesis searched(Steps steps, const SearchOptions& options, std::span<float> first, const Extend& extend) {
  std::vector<std::span<float>> rows{first};
  for (int tokens = 0;; ++tokens) {
    const auto extensions = steps.step(rows);
    if (extensions.empty() || tokens + 1 >= options.most_tokens)
      return steps.best();
    rows = extend(extensions);
  }
}

} // namespace

Hypothesis search(const TokenRules& rules, const SearchOptions& options, std::span<float> first,
                  const Extend& extend) {
  if (options.temperature > 0)
    return searched(Sampling(rules, options), options, first, extend);
  return searched(BeamSearch(rules, options), options, first, extend);
}

} // namespace voxgate

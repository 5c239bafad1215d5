#include "backends/whisper/whisper_search.h"

#include "backends/whisper/whisper_logits.h"
#include "status.h"

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
  if (hypothesis.finished) {
    hypothesis.end_logprob = candidate.logprob;
    return;
  }
  hypothesis.tokens.push_back(candidate.token);
  hypothesis.logprobs.push_back(candidate.logprob);
}

// The `count` most probable tokens, the best first; of two that are equal the lower one comes first. Hardly
// any token is among them, so whole blocks of tokens are passed over.
std::vector<Candidate> best_of(std::span<const float> logits, size_t parent, double sum, size_t count) {
  constexpr size_t kBlock = 256;
  const float log_sum = log_sum_of_exponentials(logits);
  std::vector<Candidate> best;
  float least = -INFINITY; // above it, a logit is among the best so far
  for (size_t first = 0; first < logits.size(); first += kBlock) {
    const auto block = logits.subspan(first, std::min(kBlock, logits.size() - first));
    if (!(highest_of(block) > least))
      continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (!(block[i] > least))
        continue;
      if (best.size() == count)
        best.pop_back();
      const float logprob = block[i] - log_sum;
      const auto at = std::find_if(best.begin(), best.end(),
                                   [logprob](const Candidate& other) { return other.logprob < logprob; });
      best.insert(at, {parent, static_cast<int32_t>(first + i), logprob, sum + static_cast<double>(logprob)});
      if (best.size() == count)
        least = logits[static_cast<size_t>(best.back().token)];
    }
  }
  return best;
}

class BeamSearch {
 public:
  BeamSearch(const TokenRules& rules, const SearchOptions& options)
      : rules_(rules), beams_(static_cast<size_t>(options.beams)),
        most_of_loop_(static_cast<size_t>(options.most_tokens_of_loop)), known_score_(options.known_score),
        known_tokens_(static_cast<size_t>(options.known_tokens)) {}

  // The extensions that are followed; empty when the search is over.
  std::vector<Extension> step(std::span<const std::span<float>> rows) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < live_.size(); ++i) {
      rules_.apply(live_[i].tokens, rows[i]);
      std::ranges::copy(best_of(rows[i], i, live_[i].sum, beams_ + 1), std::back_inserter(candidates));
    }
    std::ranges::stable_sort(candidates, std::greater(), &Candidate::sum);
    std::vector<Hypothesis> next;
    std::vector<Extension> extensions;
    bool hopeless = false;
    std::vector<bool> loops(live_.size()); // a text that left its loop would only begin another one
    for (const auto& candidate : candidates) {
      if (loops[candidate.parent])
        continue;
      auto hypothesis = live_[candidate.parent];
      take(hypothesis, candidate, rules_.special().end_of_text);
      if (hypothesis.finished) {
        finished_.push_back(std::move(hypothesis));
        continue;
      }
      if (!may_win(hypothesis)) { // nor may those behind it, which are less probable
        hopeless = true;
        break;
      }
      loops[candidate.parent] = hypothesis.tokens.size() > most_of_loop_ && is_loop(hypothesis.tokens);
      if (loops[candidate.parent])
        continue;
      next.push_back(std::move(hypothesis));
      extensions.push_back({candidate.parent, candidate.token});
      if (next.size() == beams_)
        break;
    }
    if (next.empty() && finished_.empty() && !hopeless)
      throw Failure(StatusCode::repetition, "The decoder repeats itself");
    if (!next.empty() || hopeless)
      live_ = std::move(next);
    return is_over() ? std::vector<Extension>() : extensions;
  }

  Hypothesis best() const {
    const auto& all = finished_.empty() ? live_ : finished_;
    const bool is_found = !all.empty() && best_of_all(all).score() > known_score_ + kRounding;
    return is_found ? best_of_all(all) : Hypothesis();
  }

 private:
  // Texts that are much longer than one that ended, and longer than speech, will not end.
  bool is_over() const {
    if (live_.empty() || finished_.size() >= beams_)
      return true;
    if (finished_.empty())
      return false;
    const size_t live = live_.front().tokens.size();
    return live > most_of_loop_ && live > 2 * best_of_all(finished_).tokens.size() + kLonger;
  }

  static const Hypothesis& best_of_all(const std::vector<Hypothesis>& texts) {
    return *std::ranges::max_element(texts, {}, &Hypothesis::score);
  }

  // With nothing but certain tokens from here on.
  bool may_win(const Hypothesis& hypothesis) const {
    const auto tokens = std::max(hypothesis.tokens.size(), known_tokens_ + kMore);
    return hypothesis.sum > known_score_ * static_cast<double>(tokens + 1);
  }

  static constexpr size_t kLonger = 16;
  static constexpr size_t kMore = 2;        // tokens that a more probable text may have
  static constexpr double kRounding = 1e-6; // of a score, as the caller has it

  const TokenRules& rules_;
  size_t beams_;
  size_t most_of_loop_;
  double known_score_;
  size_t known_tokens_;
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

  // The temperature decides what is drawn, and not how probable the model is said to find it. Without the
  // highest one no quotient is above 0, however small the temperature is.
  int32_t drawn(std::span<const float> logprobs) {
    const float highest = highest_of(logprobs);
    at_temperature_.assign(logprobs.begin(), logprobs.end());
    for (float& logprob : at_temperature_)
      logprob = (logprob - highest) / options_.temperature;
    log_softmax(at_temperature_, at_temperature_);
    double left = std::uniform_real_distribution<double>(0, 1)(random_);
    size_t last = 0;
    for (size_t token = 0; token < at_temperature_.size(); ++token) {
      if (std::isinf(at_temperature_[token]))
        continue;
      last = token;
      left -= std::exp(static_cast<double>(at_temperature_[token]));
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
  std::vector<float> at_temperature_;
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

bool is_loop(std::span<const int32_t> tokens) {
  constexpr size_t kTimes = 8, kLeast = 32;
  for (size_t period = 1; period * kTimes <= tokens.size(); ++period) {
    const size_t length = std::max(period * kTimes, kLeast);
    if (length > tokens.size())
      return false;
    const auto last = tokens.last(length);
    if (std::equal(last.begin() + static_cast<ptrdiff_t>(period), last.end(), last.begin()))
      return true;
  }
  return false;
}

Hypothesis search(const TokenRules& rules, const SearchOptions& options, std::span<float> first,
                  const Extend& extend) {
  if (options.temperature > 0)
    return searched(Sampling(rules, options), options, first, extend);
  return searched(BeamSearch(rules, options), options, first, extend);
}

} // namespace voxgate

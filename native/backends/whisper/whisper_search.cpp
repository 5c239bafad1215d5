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

const Hypothesis& best_of_all(const std::vector<Hypothesis>& texts) {
  return *std::ranges::max_element(texts, {}, &Hypothesis::score);
}

// Texts that are much longer than one that ended, and longer than speech, will not end.
bool is_much_longer(const Hypothesis& live, const std::vector<Hypothesis>& finished, size_t most_of_loop) {
  constexpr size_t kLonger = 16;
  const size_t tokens = live.tokens.size();
  return !finished.empty() && tokens > most_of_loop &&
         tokens > 2 * best_of_all(finished).tokens.size() + kLonger;
}

class BeamSearch {
 public:
  BeamSearch(const TokenRules& rules, const SearchOptions& options)
      : rules_(rules), beams_(static_cast<size_t>(options.beams)),
        choices_(std::max(beams_ + 1, options.kept.count)),
        most_of_loop_(static_cast<size_t>(options.most_tokens_of_loop)), kept_(options.kept.choices) {}

  // The extensions that are followed; empty when the search is over.
  std::vector<Extension> step(std::span<const std::span<float>> rows) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < live_.size(); ++i) {
      rules_.apply(live_[i].tokens, rows[i]);
      std::ranges::copy(best_of(rows[i], i, live_[i].sum, choices_), std::back_inserter(candidates));
    }
    std::ranges::stable_sort(candidates, std::greater(), &Candidate::sum);
    if (kept_ != nullptr)
      keep(candidates);
    std::vector<Hypothesis> next;
    std::vector<Extension> extensions;
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
      loops[candidate.parent] = hypothesis.tokens.size() > most_of_loop_ && is_loop(hypothesis.tokens);
      if (loops[candidate.parent])
        continue;
      extensions.push_back({candidate.parent, candidate.token, hypothesis.tokens.size() - 1});
      next.push_back(std::move(hypothesis));
      if (next.size() == beams_)
        break;
    }
    if (next.empty() && finished_.empty())
      throw Failure(StatusCode::repetition, "The decoder repeats itself");
    if (!next.empty())
      live_ = std::move(next);
    const bool is_over =
        finished_.size() >= beams_ || is_much_longer(live_.front(), finished_, most_of_loop_);
    return is_over ? std::vector<Extension>() : extensions;
  }

  Hypothesis best() const {
    if (kept_ != nullptr && finished_.empty())
      kept_->clear();
    return best_of_all(finished_.empty() ? live_ : finished_);
  }

 private:
  // A greedy search follows one text, so that all candidates continue it.
  void keep(std::span<const Candidate> candidates) {
    auto& choices = kept_->emplace_back();
    for (const auto& candidate : candidates)
      choices.push_back({candidate.token, candidate.logprob});
  }

  const TokenRules& rules_;
  size_t beams_;
  size_t choices_;
  size_t most_of_loop_;
  Choices* kept_;
  std::vector<Hypothesis> live_{1};
  std::vector<Hypothesis> finished_;
};

// Beam search beside a known text, which is followed like the others but not computed again: where it is the
// only one left, the search goes to its next token at once.
class RivalSearch {
 public:
  RivalSearch(const TokenRules& rules, const SearchOptions& options)
      : rules_(rules), beams_(static_cast<size_t>(options.beams)),
        most_of_loop_(static_cast<size_t>(options.most_tokens_of_loop)), known_(*options.known) {
    for (const auto& choices : known_)
      sums_.push_back(sums_.back() + static_cast<double>(choices.front().logprob));
    score_ = sums_.back() / static_cast<double>(known_.size());
  }

  // The extensions that are followed; empty when the search is over.
  std::vector<Extension> step(std::span<const std::span<float>> rows) {
    std::vector<Extension> extensions;
    while (extensions.empty() && (follows_known_ || !live_.empty()))
      extensions = next(candidates(rows));
    return extensions;
  }

  Hypothesis best() const { return best_; }

 private:
  std::vector<Candidate> candidates(std::span<const std::span<float>> rows) const {
    std::vector<Candidate> result;
    if (follows_known_) {
      for (const auto& [token, logprob] : known_[at_])
        result.push_back({0, token, logprob, sums_[at_] + static_cast<double>(logprob)});
    }
    for (size_t i = 0; i < live_.size(); ++i) {
      rules_.apply(live_[i].tokens, rows[i]);
      std::ranges::copy(best_of(rows[i], i + 1, live_[i].sum, beams_ + 1), std::back_inserter(result));
    }
    std::ranges::stable_sort(result, std::greater(), &Candidate::sum);
    return result;
  }

  std::vector<Extension> next(const std::vector<Candidate>& candidates) {
    std::vector<Hypothesis> next;
    std::vector<Extension> extensions;
    bool follows_known = false;
    for (const auto& candidate : candidates) {
      if (next.size() + (follows_known ? 1 : 0) == beams_)
        break;
      if (candidate.parent == 0 && candidate.token == known_[at_].front().token) {
        follows_known = true;
        continue;
      }
      auto hypothesis = candidate.parent == 0 ? beginning_of_known() : live_[candidate.parent - 1];
      take(hypothesis, candidate, rules_.special().end_of_text);
      if (hypothesis.finished && hypothesis.score() > score_) {
        score_ = hypothesis.score();
        best_ = std::move(hypothesis);
      } else if (!hypothesis.finished && may_win(hypothesis)) {
        extensions.push_back({candidate.parent, candidate.token, at_});
        next.push_back(std::move(hypothesis));
      }
    }
    ++at_;
    follows_known_ = follows_known && at_ < known_.size();
    live_ = std::move(next);
    return extensions;
  }

  Hypothesis beginning_of_known() const {
    Hypothesis result;
    for (const auto& choices : std::span(known_).first(at_)) {
      result.tokens.push_back(choices.front().token);
      result.logprobs.push_back(choices.front().logprob);
    }
    return result;
  }

  // With a rest that costs nearly as much as that of the known text.
  bool may_win(const Hypothesis& hypothesis) const {
    const size_t length = hypothesis.tokens.size();
    if (length > most_of_loop_ && is_loop(hypothesis.tokens))
      return false;
    const double rest = sums_.back() - sums_[std::min(length + kAhead, known_.size())];
    const auto tokens = std::max(length, known_.size() - 1 + kMore);
    return hypothesis.sum + kPartOfRest * rest > score_ * static_cast<double>(tokens + 1);
  }

  static constexpr size_t kMore = 2;  // tokens that a more probable text may have
  static constexpr size_t kAhead = 2; // tokens by which it may be ahead of the known one
  static constexpr double kPartOfRest = 0.9;

  const TokenRules& rules_;
  size_t beams_;
  size_t most_of_loop_;
  const Choices& known_;
  std::vector<double> sums_{0}; // of the known text before each token, and of all
  double score_;                // that is to be surpassed
  bool follows_known_ = true;
  size_t at_ = 0; // the number of tokens that all texts have
  std::vector<Hypothesis> live_;
  Hypothesis best_;
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
      extensions.push_back({row, token, hypothesis.tokens.size() - 1});
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
Hypothesis searched(Steps steps, const SearchOptions& options, std::vector<std::span<float>> rows,
                    const Extend& extend) {
  while (true) {
    const auto extensions = steps.step(rows);
    if (extensions.empty() || static_cast<int>(extensions.front().at) + 1 >= options.most_tokens)
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
  if (options.known != nullptr)
    return searched(RivalSearch(rules, options), options, {}, extend);
  if (options.temperature > 0)
    return searched(Sampling(rules, options), options, {first}, extend);
  return searched(BeamSearch(rules, options), options, {first}, extend);
}

} // namespace voxgate

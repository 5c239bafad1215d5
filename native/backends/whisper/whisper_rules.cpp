#include "backends/whisper/whisper_rules.h"

#include "backends/whisper/whisper_logits.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace voxgate {
namespace {

constexpr int32_t kLatestStart = 50; // the text begins in the first second

void forbid(std::span<float> logits, int64_t from, int64_t to) {
  const auto size = static_cast<int64_t>(logits.size());
  std::fill(logits.begin() + std::clamp<int64_t>(from, 0, size),
            logits.begin() + std::clamp<int64_t>(to, 0, size), -INFINITY);
}

} // namespace

TokenRules::TokenRules(SpecialTokens special, Options options)
    : special_(std::move(special)), options_(options) {}

void TokenRules::apply(std::span<const int32_t> said, std::span<float> logits) const {
  for (const int32_t token : special_.never)
    forbid(logits, token, token + 1);
  if (said.empty()) {
    forbid(logits, special_.end_of_text, special_.end_of_text + 1);
    if (special_.space >= 0)
      forbid(logits, special_.space, special_.space + 1);
  }
  if (options_.times)
    apply_times(said, logits);
  else
    forbid(logits, special_.first_time, static_cast<int64_t>(logits.size()));
}

void TokenRules::apply_times(std::span<const int32_t> said, std::span<float> logits) const {
  const auto size = static_cast<int64_t>(logits.size());
  const int64_t first_time = special_.first_time;
  const bool last_is_time = !said.empty() && is_time(said.back());
  const bool one_before_is_time = said.size() < 2 || is_time(said[said.size() - 2]);
  // Times come in pairs, the end of a segment and the start of the next, but for the first and the last one.
  if (last_is_time && one_before_is_time)
    forbid(logits, first_time, size);
  else if (last_is_time)
    forbid(logits, 0, special_.end_of_text);
  // They never fall, and no segment is empty.
  const auto last_time =
      std::find_if(said.rbegin(), said.rend(), [this](int32_t token) { return is_time(token); });
  if (last_time != said.rend())
    forbid(logits, first_time, last_is_time && !one_before_is_time ? *last_time : *last_time + 1);
  if (said.empty()) {
    forbid(logits, 0, first_time);
    forbid(logits, first_time + kLatestStart + 1, size);
  }
  forbid(logits, first_time + options_.last_time + 1, size);

  // Where all times together are more probable than each text token, a time comes next.
  const auto times = logits.subspan(static_cast<size_t>(first_time));
  const auto text = logits.first(static_cast<size_t>(first_time));
  const float highest = highest_of(text);
  if (std::isinf(highest) || log_sum_of_exponentials(times) > highest)
    forbid(logits, 0, first_time);
}

} // namespace voxgate

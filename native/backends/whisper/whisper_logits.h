#pragma once

#include <span>

namespace voxgate {

// Functions of the scores of a whole vocabulary, called for every token. A logit of minus infinity belongs to
// a token that must not be chosen.

// The highest value; minus infinity where there is none.
float highest_of(std::span<const float> values);

// log(sum(exp(values)))
float log_sum_of_exponentials(std::span<const float> values);

// logprobs[i] = log(softmax(logits)[i]); both may be the same.
void log_softmax(std::span<const float> logits, std::span<float> logprobs);

// softmax(logits)[index]
float softmax_at(std::span<const float> logits, size_t index);

} // namespace voxgate

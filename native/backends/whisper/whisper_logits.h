#pragma once

#include <span>

namespace voxgate {

// Functions of the scores of a whole vocabulary; the first two are called for every token. A logit of minus
// infinity belongs to a token that must not be chosen.

// logprobs[i] = log(softmax(logits)[i])
void log_softmax(std::span<const float> logits, std::span<float> logprobs);

// probabilities[i] = exp(logprobs[i]); below exp(-87) it is 0
void exponentials(std::span<const float> logprobs, std::span<float> probabilities);

// softmax(logits)[index]
float softmax_at(std::span<const float> logits, size_t index);

} // namespace voxgate

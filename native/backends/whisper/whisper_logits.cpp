#include "backends/whisper/whisper_logits.h"

#include "exponential.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace voxgate {
namespace {

// In lanes: additions and comparisons that do not wait for each other.
template <typename Join> float reduced(std::span<const float> values, float start, Join join) {
  std::array<float, 16> lanes;
  lanes.fill(start);
  size_t i = 0;
  for (; i + lanes.size() <= values.size(); i += lanes.size())
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = join(lanes[lane], values[i + lane]);
  for (; i < values.size(); ++i)
    lanes[0] = join(lanes[0], values[i]);
  float result = start;
  for (const float lane : lanes)
    result = join(result, lane);
  return result;
}

} // namespace

void log_softmax(std::span<const float> logits, std::span<float> logprobs) {
  const float highest = reduced(logits, -INFINITY, [](float a, float b) { return a < b ? b : a; });
  for (size_t i = 0; i < logits.size(); ++i)
    logprobs[i] = exponential(logits[i] - highest);
  const float sum = reduced(logprobs, 0, [](float a, float b) { return a + b; });
  const float log_sum = highest + std::log(sum);
  for (size_t i = 0; i < logits.size(); ++i)
    logprobs[i] = logits[i] - log_sum;
}

void exponentials(std::span<const float> logprobs, std::span<float> probabilities) {
  for (size_t i = 0; i < logprobs.size(); ++i)
    probabilities[i] = exponential(logprobs[i]);
}

} // namespace voxgate

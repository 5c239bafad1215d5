#include "backends/whisper/whisper_logits.h"

#include "exponential.h"
#include "simd_dispatch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace voxgate {
namespace {

// Folds every value, after `map`, into one. Sixteen partial results do not wait for each other. It is inlined
// for each processor that its callers are compiled for.
template <typename Map, typename Join>
[[gnu::always_inline]] inline float folded(std::span<const float> values, float start, Map map, Join join) {
  std::array<float, 16> lanes;
  lanes.fill(start);
  size_t i = 0;
  for (; i + lanes.size() <= values.size(); i += lanes.size())
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = join(lanes[lane], map(values[i + lane]));
  for (; i < values.size(); ++i)
    lanes[0] = join(lanes[0], map(values[i]));
  float result = start;
  for (const float lane : lanes)
    result = join(result, lane);
  return result;
}

} // namespace

VOXGATE_VECTOR_CLONES
float highest_of(std::span<const float> values) {
  return folded(values, -INFINITY, std::identity(), [](float a, float b) { return a < b ? b : a; });
}

VOXGATE_VECTOR_CLONES
float log_sum_of_exponentials(std::span<const float> values) {
  const float highest = highest_of(values);
  if (std::isinf(highest))
    return highest;
  const auto weight = [highest](float value) { return exponential(value - highest); };
  return highest + std::log(folded(values, 0, weight, std::plus()));
}

VOXGATE_VECTOR_CLONES
void log_softmax(std::span<const float> logits, std::span<float> logprobs) {
  const float log_sum = log_sum_of_exponentials(logits);
  for (size_t i = 0; i < logits.size(); ++i)
    logprobs[i] = logits[i] - log_sum;
}

VOXGATE_VECTOR_CLONES
float softmax_at(std::span<const float> logits, size_t index) {
  const float highest = highest_of(logits);
  const auto weight = [highest](float logit) { return exponential(logit - highest); };
  return weight(logits[index]) / folded(logits, 0, weight, std::plus());
}

} // namespace voxgate

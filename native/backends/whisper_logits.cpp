#include "backends/whisper_logits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace voxgate {
namespace {

constexpr float kSmallest = -87; // exp of less is not a normal float

// exp(x) of x <= 0 without a branch or a call, so that the compiler makes vectors of it: 2^n * exp(r), |r| <=
// ln(2)/2, by a polynomial (Cephes, expf.c, https://www.netlib.org/cephes/). Relative error below 2e-7.
inline float exponential(float x) {
  constexpr float round = 12582912; // 1.5 * 2^23: what is added to it is rounded to an integer
  const float bounded = x < kSmallest ? kSmallest : x;
  const float shifted = bounded * 1.44269504F + round;
  const float n = shifted - round;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1;
  const float scaled =
      std::bit_cast<float>(std::bit_cast<int32_t>(p) + (std::bit_cast<int32_t>(shifted) << 23));
  return x < kSmallest ? 0 : scaled;
}

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

#include "harness.h"
#include "kernel_graph.h"

#include "backends/whisper/whisper_alignment.h"

#include <algorithm>
#include <cmath>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr size_t kPositions = 80;
constexpr size_t kPrompt = 3; // tokens before the one that ends the prompt

// Each row from the end of the prompt on looks at its own stretch of the audio; the rows before look
// everywhere. `noise` is added to every score, other noise for each head.
std::vector<float> scores_of(const std::vector<int>& ends, size_t heads, float noise) {
  const size_t tokens = kPrompt + ends.size() + 2;
  std::vector<float> values = random_values(heads * tokens * kPositions, 7);
  for (float& value : values)
    value *= noise;
  for (size_t head = 0; head < heads; ++head) {
    for (size_t row = 0; row <= ends.size(); ++row) {
      const auto begin = row == 0 ? 0 : static_cast<size_t>(ends[row - 1]);
      const auto end = row == ends.size() ? kPositions : static_cast<size_t>(ends[row]);
      float* at = &values[(head * tokens + kPrompt + row) * kPositions];
      std::for_each(at + begin, at + end, [](float& score) { score += 8; });
    }
  }
  return values;
}

std::vector<int> aligned(const std::vector<float>& values, size_t heads, size_t tokens, size_t used) {
  return token_ends({values, heads, tokens, kPositions, 0.5F}, used, kPrompt);
}

} // namespace

TEST("whisper alignment: each token ends where the audio goes on to the next") {
  const std::vector<int> ends{10, 18, 40, 41, 66};
  for (const size_t heads : {size_t{1}, size_t{6}}) {
    const auto found = aligned(scores_of(ends, heads, 0), heads, kPrompt + ends.size() + 2, kPositions);
    CHECK(found.size() == ends.size());
    for (size_t i = 0; i < ends.size(); ++i) {
      if (i != 2 && i != 3) // a stretch of one position is narrower than the median filter
        CHECK(found[i] == ends[i]);
    }
    CHECK(found[2] >= 38 && found[3] <= 44);
  }
}

TEST("whisper alignment: noise moves ends little, and they never fall") {
  const std::vector<int> ends{12, 25, 37, 50, 62};
  const auto found = aligned(scores_of(ends, 6, 4), 6, kPrompt + ends.size() + 2, kPositions);
  CHECK(std::ranges::is_sorted(found));
  for (size_t i = 0; i < ends.size(); ++i)
    CHECK(std::abs(found[i] - ends[i]) <= 2);
}

TEST("whisper alignment: positions behind the audio have no influence") {
  const std::vector<int> ends{10, 20, 30};
  auto values = scores_of(ends, 2, 1);
  constexpr size_t kUsed = 45;
  const auto found = aligned(values, 2, kPrompt + ends.size() + 2, kUsed);
  for (size_t row = 0; row * kPositions < values.size(); ++row)
    std::fill_n(&values[row * kPositions + kUsed], kPositions - kUsed, 1000.0F);
  CHECK(aligned(values, 2, kPrompt + ends.size() + 2, kUsed) == found);
  CHECK(std::ranges::max(found) < static_cast<int>(kUsed));
}

#include "backends/whisper/whisper_alignment.h"

#include "exponential.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace voxgate {
namespace {

constexpr int kEnglishVocabulary = 51864;
constexpr int kVocabularyOfV3 = 51866;

constexpr size_t kMedianWidth = 7;
constexpr size_t kMedianHalf = kMedianWidth / 2;

// Rows of the same length, one for each token.
class Matrix {
 public:
  Matrix(size_t rows, size_t columns) : columns_(columns), values_(rows * columns) {}

  size_t columns() const { return columns_; }
  size_t rows() const { return values_.size() / columns_; }
  std::span<float> row(size_t at) { return std::span(values_).subspan(at * columns_, columns_); }
  std::span<const float> row(size_t at) const { return std::span(values_).subspan(at * columns_, columns_); }

 private:
  size_t columns_;
  std::vector<float> values_;
};

void softmax(std::span<const float> scores, float scale, std::span<float> weights) {
  const float highest = *std::ranges::max_element(scores);
  float sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    weights[i] = exponential(scale * (scores[i] - highest));
    sum += weights[i];
  }
  for (float& weight : weights)
    weight /= sum;
}

// Each position gets a mean of 0 and a variance of 1 over the tokens.
void normalize_columns(Matrix& weights) {
  const auto count = static_cast<float>(weights.rows());
  std::vector<float> mean(weights.columns());
  std::vector<float> deviation(weights.columns());
  for (size_t t = 0; t < weights.rows(); ++t) {
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += weights.row(t)[i] / count;
  }
  for (size_t t = 0; t < weights.rows(); ++t) {
    for (size_t i = 0; i < mean.size(); ++i)
      deviation[i] += (weights.row(t)[i] - mean[i]) * (weights.row(t)[i] - mean[i]) / count;
  }
  for (float& variance : deviation)
    variance = std::sqrt(variance) + std::numeric_limits<float>::min();
  for (size_t t = 0; t < weights.rows(); ++t) {
    for (size_t i = 0; i < mean.size(); ++i)
      weights.row(t)[i] = (weights.row(t)[i] - mean[i]) / deviation[i];
  }
}

void sort_pair(float& a, float& b) {
  const float low = std::min(a, b);
  b = std::max(a, b);
  a = low;
}

// A sorting network that leaves the median in the middle (Smith 1996, "Implementing median filters in XC4000E
// FPGAs"). It has no branches, so the compiler can do several positions at a time.
float median(std::array<float, kMedianWidth> v) {
  constexpr std::array<std::array<size_t, 2>, 13> kSteps{{{0, 5},
                                                          {0, 3},
                                                          {1, 6},
                                                          {2, 4},
                                                          {0, 1},
                                                          {3, 5},
                                                          {2, 6},
                                                          {2, 3},
                                                          {3, 6},
                                                          {4, 5},
                                                          {1, 4},
                                                          {1, 3},
                                                          {3, 4}}};
  for (const auto& [a, b] : kSteps)
    sort_pair(v[a], v[b]);
  return v[kMedianHalf];
}

// Adds the median of each value and its neighbors to `sum`. Beyond both ends the row is continued by its
// mirror image without the value at the end itself.
void add_filtered(std::span<const float> row, std::vector<float>& padded, std::span<float> sum) {
  padded.resize(row.size() + 2 * kMedianHalf);
  std::ranges::copy(row, padded.begin() + kMedianHalf);
  for (size_t i = 1; i <= kMedianHalf; ++i) {
    padded[kMedianHalf - i] = row[i];
    padded[kMedianHalf + row.size() - 1 + i] = row[row.size() - 1 - i];
  }
  const float* at = padded.data();
  for (size_t i = 0; i < sum.size(); ++i, ++at)
    sum[i] += median({at[0], at[1], at[2], at[3], at[4], at[5], at[6]});
}

enum class Step : uint8_t { both, token, position };

// For each row but the first, the first column of the cheapest monotonic path through it (dynamic time
// warping).
std::vector<int> path_enters(const Matrix& costs) {
  const size_t columns = costs.columns();
  constexpr float kNever = std::numeric_limits<float>::infinity();
  std::vector<Step> steps(costs.rows() * columns);
  std::vector<float> before(columns + 1, kNever);
  std::vector<float> now(columns + 1, kNever);
  before[0] = 0;
  for (size_t t = 0; t < costs.rows(); ++t) {
    now[0] = kNever;
    for (size_t i = 0; i < columns; ++i) {
      const float both = before[i];
      const float token = before[i + 1];
      const float position = now[i];
      const bool is_both = both < token && both < position;
      const bool is_token = !is_both && token < both && token < position;
      steps[t * columns + i] = is_both ? Step::both : is_token ? Step::token : Step::position;
      now[i + 1] = costs.row(t)[i] + (is_both ? both : is_token ? token : position);
    }
    std::swap(before, now);
  }
  std::vector<int> enters(costs.rows() - 1);
  size_t i = columns - 1;
  for (size_t t = costs.rows() - 1; t > 0;) {
    const Step step = i == 0 ? Step::token : steps[t * columns + i];
    if (step != Step::position)
      enters[--t] = static_cast<int>(i);
    if (step != Step::token)
      --i;
  }
  return enters;
}

} // namespace

whisper_alignment_heads_preset published_heads(const WhisperShape& shape) {
  const bool english = shape.vocabulary == kEnglishVocabulary;
  const bool v3 = shape.vocabulary == kVocabularyOfV3;
  if (shape.audio_layers == 32 && shape.text_layers == 4 && v3)
    return WHISPER_AHEADS_LARGE_V3_TURBO;
  if (shape.audio_layers != shape.text_layers)
    return WHISPER_AHEADS_N_TOP_MOST; // distilled: fewer text layers than the model the heads were found in
  switch (shape.audio_layers) {
  case 4:
    return english ? WHISPER_AHEADS_TINY_EN : WHISPER_AHEADS_TINY;
  case 6:
    return english ? WHISPER_AHEADS_BASE_EN : WHISPER_AHEADS_BASE;
  case 12:
    return english ? WHISPER_AHEADS_SMALL_EN : WHISPER_AHEADS_SMALL;
  case 24:
    return english ? WHISPER_AHEADS_MEDIUM_EN : WHISPER_AHEADS_MEDIUM;
  case 32: // v1 and v2 have the same shape; v2 is the one in use
    return v3 ? WHISPER_AHEADS_LARGE_V3 : WHISPER_AHEADS_LARGE_V2;
  default:
    return WHISPER_AHEADS_N_TOP_MOST;
  }
}

std::vector<int> token_ends(const AlignmentScores& scores, size_t used, size_t before) {
  Matrix sum(scores.tokens, used);
  std::vector<float> padded;
  for (size_t head = 0; head < scores.heads; ++head) {
    Matrix weights(scores.tokens, used);
    for (size_t t = 0; t < scores.tokens; ++t)
      softmax(scores.values.subspan((head * scores.tokens + t) * scores.positions, used), scores.scale,
              weights.row(t));
    normalize_columns(weights);
    for (size_t t = 0; t < scores.tokens; ++t)
      add_filtered(weights.row(t), padded, sum.row(t));
  }
  // The row of a token says where the next one is, so the last one has no meaning.
  Matrix costs(scores.tokens - before - 1, used);
  for (size_t t = 0; t < costs.rows(); ++t)
    std::ranges::transform(sum.row(before + t), costs.row(t).begin(),
                           [&scores](float weight) { return -weight / static_cast<float>(scores.heads); });
  return path_enters(costs);
}

} // namespace voxgate

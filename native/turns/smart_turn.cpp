#include "turns/smart_turn.h"

#include "exponential.h"
#include "layers/linear_layer.h"
#include "layers/network_weights.h"
#include "layers/panels.h"
#include "layers/team.h"
#include "turns/activations.h"
#include "turns/turn_mel.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace voxgate {
namespace {

constexpr size_t kBands = 80;
constexpr size_t kFrames = SmartTurn::kSamples / LogMel::kHop;
constexpr size_t kPositions = kFrames / 2;
constexpr size_t kState = 384;
constexpr size_t kInner = 4 * kState;
constexpr size_t kHeads = 6;
constexpr size_t kHead = kState / kHeads;
constexpr size_t kBlocks = 4;
constexpr size_t kTaps = 3;
constexpr size_t kPool = 256;
constexpr size_t kClassifier = 64;
constexpr size_t kRows = 48;     // positions of which a thread computes a layer; a multiple of 12
constexpr size_t kUnrounded = 1; // the width of pieces, of layers that are computed of one row
constexpr float kEpsilon = 1e-5F;

// A normalization of the values of a row (https://arxiv.org/abs/1607.06450).
class RowNorm {
 public:
  RowNorm(NetworkWeights& weights, const std::string& name, size_t width)
      : factors_(weights.take(name + ".weight", {extent(width)})),
        summands_(weights.take(name + ".bias", {extent(width)})) {}

  void apply(const float* in, float* out) const {
    double sum = 0;
    for (size_t i = 0; i < factors_.size(); ++i)
      sum += in[i];
    const auto count = static_cast<double>(factors_.size());
    const auto mean = static_cast<float>(sum / count);
    double squares = 0;
    for (size_t i = 0; i < factors_.size(); ++i)
      squares += (in[i] - mean) * (in[i] - mean);
    const auto factor = static_cast<float>(1 / std::sqrt(squares / count + kEpsilon));
    for (size_t i = 0; i < factors_.size(); ++i)
      out[i] = (in[i] - mean) * factor * factors_[i] + summands_[i];
  }

 private:
  std::vector<float> factors_;
  std::vector<float> summands_;
};

LinearLayer linear(NetworkWeights& weights, const std::string& name, size_t outputs, size_t inputs,
                   bool has_bias = true) {
  return {weights, name, {extent(outputs), extent(inputs)}, has_bias, inputs};
}

LinearLayer convolution(NetworkWeights& weights, const std::string& name, size_t inputs) {
  return {weights, name, {extent(kState), extent(inputs), extent(kTaps)}, true, kTaps * inputs};
}

// A layer of the classifier. It has one row, for which tiles would be more work than vectors.
LinearLayer single(NetworkWeights& weights, const std::string& name, size_t outputs, size_t inputs) {
  return {weights, name, {extent(outputs), extent(inputs)}, true, kUnrounded};
}

// A block of the encoder, by its names in the file.
struct Block {
  Block(NetworkWeights& weights, const std::string& name)
      : attention_norm(weights, name + ".attention_norm", kState),
        query(linear(weights, name + ".query", kState, kState)),
        key(linear(weights, name + ".key", kState, kState, false)),
        value(linear(weights, name + ".value", kState, kState)),
        out(linear(weights, name + ".out", kState, kState)), mlp_norm(weights, name + ".mlp_norm", kState),
        up(linear(weights, name + ".up", kInner, kState)),
        down(linear(weights, name + ".down", kState, kInner)) {}

  RowNorm attention_norm;
  LinearLayer query, key, value, out;
  RowNorm mlp_norm;
  LinearLayer up, down;
};

std::vector<Block> blocks_of(NetworkWeights& weights) {
  std::vector<Block> blocks;
  blocks.reserve(kBlocks);
  for (size_t i = 0; i < kBlocks; ++i)
    blocks.emplace_back(weights, "block." + std::to_string(i));
  return blocks;
}

// What the blocks compute with; a row for each position.
struct Workspace {
  std::vector<float> state = std::vector<float>(kPositions * kState);
  std::vector<float> normal = state;
  std::vector<float> query = state;
  std::vector<float> key = state;
  std::vector<float> value = state;
};

// The attention of one head, from its part of the rows to the same part of `normal`.
void attend(Workspace& work, size_t head) {
  const size_t at = head * kHead;
  std::vector<float> keys(kPositions * kHead); // [position][value]
  std::vector<float> values(keys.size());      // [value][position]
  for (size_t row = 0; row < kPositions; ++row)
    for (size_t i = 0; i < kHead; ++i) {
      keys[row * kHead + i] = work.key[row * kState + at + i];
      values[i * kPositions + row] = work.value[row * kState + at + i];
    }
  std::vector<float> scores(kPositions * kPositions);
  Panels(keys, {}, kPositions)
      .multiply({work.query.data() + at, kState, kHead}, kPositions, scores.data(), kPositions);
  for (size_t row = 0; row < kPositions; ++row)
    softmax(&scores[row * kPositions], kPositions);
  Panels(values, {}, kHead)
      .multiply({scores.data(), kPositions, kPositions}, kPositions, work.normal.data() + at, kState);
}

} // namespace

struct SmartTurn::Network {
  Network(NetworkWeights&& weights, int threads)
      : mel(weights.take("mel_filters", {extent(kBands), extent(LogMel::kBins)}), kBands),
        conv1(convolution(weights, "conv1", kBands)), conv2(convolution(weights, "conv2", kState)),
        positions(weights.take("positions", {extent(kPositions), extent(kState)})),
        blocks(blocks_of(weights)), norm(weights, "norm", kState),
        pool(linear(weights, "pool.0", kPool, kState)), pool_score(single(weights, "pool.1", 1, kPool)),
        classifier(single(weights, "classifier.0", kPool, kState)),
        classifier_norm(weights, "classifier.norm", kPool),
        classifier_inner(single(weights, "classifier.1", kClassifier, kPool)),
        classifier_last(single(weights, "classifier.2", 1, kClassifier)), team(threads) {
    weights.require_all_taken();
  }

  // Calls work(first, count) for groups of rows.
  template <typename Work> void share_rows(size_t rows, const Work& work) const {
    team.share((rows + kRows - 1) / kRows,
               [&](size_t share) { work(share * kRows, std::min(kRows, rows - share * kRows)); });
  }

  // The state of the encoder before its blocks.
  void listen(std::span<const float> samples, std::vector<float>& state) const {
    // A frame of zeros before the first and one after the last pad the convolutions.
    std::vector<float> spectrum((kFrames + 2) * kBands);
    turn_log_mel(mel, samples, kBands, &spectrum[kBands], team);
    std::vector<float> frames((kFrames + 2) * kState);
    share_rows(kFrames, [&](size_t first, size_t count) {
      float* out = &frames[(first + 1) * kState];
      conv1.multiply({&spectrum[first * kBands], kBands, kTaps * kBands}, count, out, kState);
      gelu(out, count * kState);
    });
    share_rows(kPositions, [&](size_t first, size_t count) {
      float* out = &state[first * kState];
      conv2.multiply({&frames[2 * first * kState], 2 * kState, kTaps * kState}, count, out, kState);
      gelu(out, count * kState);
      add(&positions[first * kState], count * kState, out);
    });
  }

  void advance(const Block& block, Workspace& work) const {
    const float attention_scale = 1 / std::sqrt(static_cast<float>(kHead));
    share_rows(kPositions, [&](size_t first, size_t count) {
      const size_t at = first * kState;
      for (size_t row = first; row < first + count; ++row)
        block.attention_norm.apply(&work.state[row * kState], &work.normal[row * kState]);
      const PanelRows rows{&work.normal[at], kState, kState};
      block.query.multiply(rows, count, &work.query[at], kState);
      block.key.multiply(rows, count, &work.key[at], kState);
      block.value.multiply(rows, count, &work.value[at], kState);
      scale(&work.query[at], count * kState, attention_scale);
    });
    team.share(kHeads, [&](size_t head) { attend(work, head); });
    share_rows(kPositions, [&](size_t first, size_t count) {
      const size_t at = first * kState;
      std::vector<float> out(count * kState), inner(count * kInner);
      block.out.multiply({&work.normal[at], kState, kState}, count, out.data(), kState);
      add(out.data(), count * kState, &work.state[at]);
      for (size_t row = 0; row < count; ++row)
        block.mlp_norm.apply(&work.state[at + row * kState], &out[row * kState]);
      block.up.multiply({out.data(), kState, kState}, count, inner.data(), kInner);
      gelu(inner.data(), count * kInner);
      block.down.multiply({inner.data(), kInner, kInner}, count, out.data(), kState);
      add(out.data(), count * kState, &work.state[at]);
    });
  }

  // The mean of the positions, weighted by attention.
  std::vector<float> pooled(Workspace& work) const {
    std::vector<float> scores(kPositions);
    share_rows(kPositions, [&](size_t first, size_t count) {
      std::vector<float> hidden(count * kPool);
      for (size_t row = first; row < first + count; ++row)
        norm.apply(&work.state[row * kState], &work.normal[row * kState]);
      pool.multiply({&work.normal[first * kState], kState, kState}, count, hidden.data(), kPool);
      tangents(hidden.data(), hidden.size());
      pool_score.multiply({hidden.data(), kPool, kPool}, count, &scores[first], 1);
    });
    softmax(scores.data(), kPositions);
    std::vector<float> sums(kState);
    for (size_t row = 0; row < kPositions; ++row)
      for (size_t i = 0; i < kState; ++i)
        sums[i] += scores[row] * work.normal[row * kState + i];
    return sums;
  }

  float classify(const std::vector<float>& input) const {
    std::vector<float> hidden(kPool), inner(kClassifier);
    classifier.multiply({input.data(), kState, kState}, 1, hidden.data(), kPool);
    classifier_norm.apply(hidden.data(), hidden.data());
    gelu(hidden.data(), kPool);
    classifier_inner.multiply({hidden.data(), kPool, kPool}, 1, inner.data(), kClassifier);
    gelu(inner.data(), kClassifier);
    float last = 0;
    classifier_last.multiply({inner.data(), kClassifier, kClassifier}, 1, &last, 1);
    return sigmoid(last);
  }

  LogMel mel;
  LinearLayer conv1, conv2;
  std::vector<float> positions;
  std::vector<Block> blocks;
  RowNorm norm;
  LinearLayer pool, pool_score, classifier;
  RowNorm classifier_norm;
  LinearLayer classifier_inner, classifier_last;
  Team team;
};

SmartTurn::SmartTurn(const std::string& path, int threads)
    : network_(std::make_unique<Network>(NetworkWeights(path, "voxgate-turn-detection"), threads)) {}

SmartTurn::~SmartTurn() = default;

float SmartTurn::probability(std::span<const float> samples, const CancelToken& cancel) const {
  cancel.check();
  std::vector<float> window(kSamples);
  const auto heard = samples.last(std::min(samples.size(), kSamples));
  std::ranges::copy(heard, window.end() - static_cast<std::ptrdiff_t>(heard.size()));
  Workspace work;
  network_->listen(window, work.state);
  for (const auto& block : network_->blocks) {
    cancel.check();
    network_->advance(block, work);
  }
  cancel.check();
  return network_->classify(network_->pooled(work));
}

} // namespace voxgate

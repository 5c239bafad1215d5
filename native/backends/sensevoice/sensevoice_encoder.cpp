#include "backends/sensevoice/sensevoice_encoder.h"

#include "backends/sensevoice/sensevoice_tiles.h"
#include "simd_dispatch.h"
#include "status.h"

#include <ggml.h>

#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace voxgate {
namespace {

constexpr float kNormEpsilon = 1e-5F;
constexpr int kVector = 16;          // floats
constexpr size_t kNodesOfBlock = 48; // an upper bound
constexpr size_t kNodesBeside = 32;

size_t max_nodes(const SenseVoiceShape& shape) {
  return kNodesOfBlock * static_cast<size_t>(shape.blocks + shape.tp_blocks) + kNodesBeside;
}

// Of the values of `a` with as many of `b`, in lanes that the compiler can compute side by side.
VOXGATE_VECTOR_CLONES float dot(const std::vector<float>& a, const std::vector<float>& b) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  const size_t whole = a.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (size_t i = whole; i < a.size(); ++i)
    sum += a[i] * b[i];
  return std::accumulate(std::begin(sums), std::end(sums), sum);
}

const TileOps* usable_tiles(const SpeechOps* ops, const SenseVoiceWeights& weights,
                            const SenseVoiceShape& shape, int max_positions) {
  const auto* tiles = ops != nullptr ? ops->tiles() : nullptr;
  return tiles != nullptr && fits_tiles(weights, shape, max_positions) ? tiles : nullptr;
}

} // namespace

class SenseVoiceEncoder::Builder {
 public:
  Builder(ggml_context* context, const SpeechOps* ops, const SenseVoiceShape& shape, int positions)
      : context_(context), ops_(ops), heads_(shape.heads), width_(shape.width), positions_(positions),
        padded_((positions + kVector - 1) / kVector * kVector), kernel_(shape.kernel) {}

  ggml_tensor* norm(ggml_tensor* x, const SenseVoiceNorm& norm) {
    if (ops_ != nullptr)
      return custom(ops_->norm, x->ne[0], positions_, speech_user(kNormEpsilon), {x, norm.weight, norm.bias});
    return ggml_add(context_, ggml_mul(context_, ggml_norm(context_, x, kNormEpsilon), norm.weight),
                    norm.bias);
  }

  ggml_tensor* linear(ggml_tensor* x, const SenseVoiceLinear& linear) {
    if (ops_ != nullptr)
      return finish(multiply(linear.weight, x), kBias, {linear.bias});
    return ggml_add(context_, multiply(linear.weight, x), linear.bias);
  }

  // The first block changes the width, so nothing can be carried around its attention.
  ggml_tensor* block(ggml_tensor* x, const SenseVoiceBlock& block, bool carry) {
    auto* heard = attention(norm(x, block.attention_norm), block);
    if (ops_ != nullptr) {
      x = carry ? finish(heard, kCarry, {x}) : heard;
      auto* hidden = multiply(block.expand.weight, norm(x, block.feed_forward_norm));
      hidden = finish(hidden, kBias | kRelu, {block.expand.bias});
      return finish(multiply(block.contract.weight, hidden), kBias | kCarry, {block.contract.bias, x});
    }
    x = carry ? ggml_add(context_, x, heard) : heard;
    auto* hidden = ggml_relu(context_, linear(norm(x, block.feed_forward_norm), block.expand));
    return ggml_add(context_, x, linear(hidden, block.contract));
  }

 private:
  // Activations of this model leave the range of half floats, so no backend may accumulate in them.
  ggml_tensor* multiply(ggml_tensor* a, ggml_tensor* b) {
    auto* product = ggml_mul_mat(context_, a, b);
    ggml_mul_mat_set_prec(product, GGML_PREC_F32);
    return product;
  }

  ggml_tensor* attention(ggml_tensor* x, const SenseVoiceBlock& block) {
    auto* qkv = linear(x, block.qkv); // [3 * width, positions]
    if (ops_ != nullptr) {
      auto* mixed = custom(ops_->attention, width_, attention_rows(width_, heads_, positions_, 0),
                           speech_user(heads_), {third(qkv, 0), third(qkv, 1), third(qkv, 2)});
      auto* seen = custom(ops_->memory, width_, memory_rows(kernel_, positions_), nullptr,
                          {third(qkv, 2), block.memory, linear(first_rows(mixed), block.out)});
      return first_rows(seen);
    }
    auto* v = third(qkv, 2);
    v = ggml_cont(context_, ggml_transpose(context_, v)); // [positions, width], for both uses below
    auto* scores = multiply(split_heads(third(qkv, 1)), split_heads(third(qkv, 0)));
    const auto head_width = width_ / heads_; // the heads divide the width evenly
    const float scale = 1.0F / std::sqrt(static_cast<float>(head_width));
    auto* weights = ggml_soft_max_ext(context_, scores, nullptr, scale, 0);
    auto* mixed =
        multiply(ggml_reshape_3d(context_, padded(v), padded_, width_ / heads_, heads_), padded(weights));
    mixed = ggml_cont_2d(context_, ggml_permute(context_, mixed, 0, 2, 1, 3), width_, positions_);
    return ggml_add(context_, linear(mixed, block.out), memory(v, block.memory));
  }

  ggml_tensor* custom(ggml_custom_op_t op, int64_t width, int64_t rows, void* user,
                      std::vector<ggml_tensor*> args) {
    return ggml_custom_4d(context_, GGML_TYPE_F32, width, rows, 1, 1, args.data(),
                          static_cast<int>(args.size()), op, GGML_N_TASKS_MAX, user);
  }

  ggml_tensor* finish(ggml_tensor* product, int steps, std::vector<ggml_tensor*> args) {
    return ggml_custom_inplace(context_, product, args.data(), static_cast<int>(args.size()), ops_->finish,
                               GGML_N_TASKS_MAX, speech_user(steps));
  }

  // Working memory lies behind them.
  ggml_tensor* first_rows(ggml_tensor* x) {
    return ggml_view_2d(context_, x, width_, positions_, x->nb[1], 0);
  }

  // The "memory" of FSMN: each channel of the values sees its neighbors in time.
  ggml_tensor* memory(ggml_tensor* v, ggml_tensor* kernel) {
    auto* seen =
        ggml_conv_2d_dw_direct(context_, kernel, ggml_reshape_4d(context_, v, positions_, 1, width_, 1), 1, 1,
                               (kernel_ - 1) / 2, 0, 1, 1);
    auto* sum = ggml_add(context_, ggml_reshape_2d(context_, seen, positions_, width_), v);
    return ggml_cont(context_, ggml_transpose(context_, sum));
  }

  // The fast product of the CPU wants rows of whole vectors; zeros add nothing to it.
  ggml_tensor* padded(ggml_tensor* x) {
    return padded_ == positions_ ? x : ggml_pad(context_, x, padded_ - positions_, 0, 0, 0);
  }

  ggml_tensor* third(ggml_tensor* qkv, size_t index) {
    return ggml_view_2d(context_, qkv, width_, positions_, qkv->nb[1],
                        index * static_cast<size_t>(width_) * sizeof(float));
  }

  ggml_tensor* split_heads(ggml_tensor* x) {
    auto* heads = ggml_cont_3d(context_, x, width_ / heads_, heads_, positions_);
    return ggml_cont(context_, ggml_permute(context_, heads, 0, 2, 1, 3));
  }

  ggml_context* context_;
  const SpeechOps* ops_; // null where a GPU computes, of operations that it knows
  int heads_, width_, positions_, padded_, kernel_;
};

SenseVoiceEncoder::SenseVoiceEncoder(GgufFile& file, const SenseVoiceShape& shape, const std::string& device,
                                     int threads, int max_frames, const CancelToken& cancel)
    : shape_(shape), compute_(device, threads, max_nodes(shape)),
      weights_(file, shape, compute_.weight_buffer_type(), cancel),
      tiles_(usable_tiles(compute_.cpu_ops(), weights_, shape, max_frames + kSenseVoiceQueries)),
      graph_memory_(max_nodes(shape) * ggml_tensor_overhead() +
                    ggml_graph_overhead_custom(max_nodes(shape), false)) {
  build(max_frames + kSenseVoiceQueries);
  compute_.reserve(graph_);
}

void SenseVoiceEncoder::build(int positions) {
  graph_context_.reset(); // before its memory is used again
  graph_context_.reset(ggml_init({graph_memory_.size(), graph_memory_.data(), true}));
  if (!graph_context_)
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the graph");
  auto* context = graph_context_.get();
  const int64_t rows = tiles_ != nullptr ? tiles_of(positions) * kTilePositions : positions;
  input_ = ggml_new_tensor_2d(context, GGML_TYPE_F32, shape_.input, rows);
  ggml_set_input(input_);
  if (tiles_ != nullptr) {
    const auto built = build_tiles(context, *tiles_, input_, weights_, shape_, positions);
    logits_ = built.scores;
    heard_ = built.heard;
    ggml_set_output(heard_);
  } else {
    Builder builder(context, compute_.cpu_ops(), shape_, positions);
    auto* x = input_;
    for (const auto& block : weights_.blocks)
      x = builder.block(x, block, &block != &weights_.blocks.front());
    x = builder.norm(x, weights_.after_norm);
    for (const auto& block : weights_.tp_blocks)
      x = builder.block(x, block, true);
    logits_ = builder.linear(builder.norm(x, weights_.tp_norm), weights_.head);
  }
  ggml_set_output(logits_);
  graph_ = ggml_new_graph_custom(context, max_nodes(shape_), false);
  ggml_build_forward_expand(graph_, logits_);
  positions_ = positions;
}

void SenseVoiceEncoder::encode(std::span<const float> frames,
                               const std::array<int32_t, kSenseVoiceQueries>& queries,
                               const CancelToken& cancel) {
  auto values = input(frames, queries);
  build(static_cast<int>(values.size()) / shape_.input);
  if (tiles_ != nullptr)
    values = to_panels(values, shape_.input);
  compute_.place(graph_);
  ggml_backend_tensor_set(input_, values.data(), 0, values.size() * sizeof(float));
  compute_.run(graph_, cancel);
}

// Normalized, behind the queries, scaled, and with the positions added. In floats and in the order of the
// reference, whose sines are taken of rounded angles.
std::vector<float> SenseVoiceEncoder::input(std::span<const float> frames,
                                            const std::array<int32_t, kSenseVoiceQueries>& queries) {
  const auto width = static_cast<size_t>(shape_.input);
  std::vector<float> values;
  values.reserve(frames.size() + queries.size() * width);
  for (const int32_t query : queries) {
    const auto row = weights_.queries.begin() + static_cast<std::ptrdiff_t>(query) * shape_.input;
    values.insert(values.end(), row, row + shape_.input);
  }
  for (size_t i = 0; i < frames.size(); ++i)
    values.push_back((frames[i] + weights_.shift[i % width]) * weights_.scale[i % width]);

  add_waves(values.size() / width);
  const float scale = std::sqrt(static_cast<float>(shape_.width));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = values[i] * scale + waves_[i];
  return values;
}

void SenseVoiceEncoder::add_waves(size_t positions) {
  const auto width = static_cast<size_t>(shape_.input);
  const size_t half = width / 2;
  const float step = std::log(10000.0F) / (static_cast<float>(half) - 1);
  for (size_t position = waves_.size() / width + 1; position <= positions; ++position)
    for (size_t column = 0; column < width; ++column) {
      const float rate = std::exp(static_cast<float>(column % half) * -step);
      const float angle = static_cast<float>(position) * rate;
      waves_.push_back(column < half ? std::sin(angle) : std::cos(angle));
    }
}

std::vector<SenseVoicePeak> SenseVoiceEncoder::peaks(int32_t blank) const {
  std::vector<float> values;
  if (tiles_ != nullptr) {
    values.resize(static_cast<size_t>(ggml_nelements(logits_)));
    ggml_backend_tensor_get(logits_, values.data(), 0, values.size() * sizeof(float));
    return read_peaks(values, shape_.vocabulary, positions_);
  }
  std::vector<SenseVoicePeak> peaks;
  for (int position = 0; position < positions_; ++position) {
    read_logits(position, values);
    peaks.push_back(peak_of(values, blank));
  }
  return peaks;
}

SenseVoiceScores SenseVoiceEncoder::scores() const {
  if (tiles_ != nullptr)
    return tile_scores();
  const auto logit = [this, at = -1, row = std::vector<float>()](int position, int32_t token) mutable {
    if (std::exchange(at, position) != position)
      read_logits(position, row);
    return row[static_cast<size_t>(token)];
  };
  return {logit, [this](int position) {
            std::vector<float> row;
            read_logits(position, row);
            return peak_of(row, -1).logprob;
          }};
}

// The tiles keep no more of the vocabulary than the best token. The rows of the tokens that are asked for are
// few, and each is taken apart once.
SenseVoiceScores SenseVoiceEncoder::tile_scores() const {
  const auto width = static_cast<size_t>(shape_.width);
  std::vector<uint16_t> packed(ggml_nbytes(heard_) / sizeof(uint16_t));
  ggml_backend_tensor_get(heard_, packed.data(), 0, ggml_nbytes(heard_));
  auto logit = [this, packed = std::move(packed), at = -1, heard = std::vector<float>(width),
                rows = std::unordered_map<int32_t, std::vector<float>>()](int position,
                                                                          int32_t token) mutable {
    if (std::exchange(at, position) != position)
      read_packed(packed, position, heard);
    auto [found, is_new] = rows.try_emplace(token);
    auto& row = found->second;
    if (is_new)
      row = weights_.head_row(token);
    return dot(heard, row) + row.back();
  };
  return {std::move(logit),
          [this](int position) { return peaks(-1)[static_cast<size_t>(position)].logprob; }};
}

void SenseVoiceEncoder::read_logits(int position, std::vector<float>& row) const {
  if (tiles_ != nullptr && position != 0)
    throw Failure(StatusCode::inference_failed, "Only the logits of the first position are kept");
  row.resize(static_cast<size_t>(shape_.vocabulary));
  const size_t bytes = row.size() * sizeof(float);
  ggml_backend_tensor_get(logits_, row.data(), static_cast<size_t>(position) * bytes, bytes);
}

} // namespace voxgate

#include "backends/sensevoice/sensevoice_tiles.h"

#include "status.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace voxgate {
namespace {

bool all_fit(const SenseVoiceBlock& block, bool first) {
  const auto fits = [](const SenseVoiceLinear& linear) { return linear.weight->type == GGML_TYPE_Q8_0; };
  const bool qkv = fits(block.qkv) || (first && block.qkv.weight->type == GGML_TYPE_F16);
  return qkv && fits(block.out) && fits(block.expand) && fits(block.contract);
}

class Builder {
 public:
  Builder(ggml_context* context, const TileOps& ops, const SenseVoiceShape& shape, int positions)
      : context_(context), ops_(ops), shape_(shape), positions_(positions), tiles_(tiles_of(positions)) {}

  ggml_tensor* norm(ggml_tensor* panel, const SenseVoiceNorm& norm) {
    return custom(ops_.norm, packed_floats(norm.weight->ne[0]), tiles_, {panel, norm.weight, norm.bias});
  }

  ggml_tensor* norm_panel(ggml_tensor* panel, const SenseVoiceNorm& norm) {
    return custom(ops_.norm_panel, panel_floats(norm.weight->ne[0]), tiles_, {panel, norm.weight, norm.bias});
  }

  // The first block changes the width, so nothing can be carried around its attention.
  ggml_tensor* block(ggml_tensor* x, const SenseVoiceBlock& block, bool carry) {
    auto* heard = custom(ops_.hear, HeardLayout(shape_.width, positions_).floats, 1,
                         {block.qkv.weight, block.qkv.bias, norm(x, block.attention_norm)});
    auto* found = custom(ops_.attention, packed_floats(shape_.width), tiles_, {heard});
    std::vector<ggml_tensor*> args{block.out.weight, block.out.bias, found, heard, block.memory};
    if (carry)
      args.push_back(x);
    x = custom(ops_.remember, panel_floats(shape_.width), tiles_, std::move(args));
    auto* hidden = custom(ops_.expand, packed_floats(shape_.hidden), tiles_,
                          {block.expand.weight, block.expand.bias, norm(x, block.feed_forward_norm)});
    return custom(ops_.contract, panel_floats(shape_.width), tiles_,
                  {block.contract.weight, block.contract.bias, hidden, x});
  }

  ggml_tensor* scores(ggml_tensor* packed, const SenseVoiceLinear& head) {
    return custom(ops_.scores, tile_scores_floats(shape_.vocabulary, positions_), 1,
                  {head.weight, head.bias, packed});
  }

 private:
  ggml_tensor* custom(ggml_custom_op_t op, int64_t floats, int64_t rows, std::vector<ggml_tensor*> args) {
    return ggml_custom_4d(context_, GGML_TYPE_F32, floats, rows, 1, 1, args.data(),
                          static_cast<int>(args.size()), op, GGML_N_TASKS_MAX,
                          tile_user(positions_, shape_.heads));
  }

  ggml_context* context_;
  const TileOps& ops_;
  const SenseVoiceShape& shape_;
  int positions_;
  int64_t tiles_;
};

} // namespace

bool fits_tiles(const SenseVoiceWeights& weights, const SenseVoiceShape& shape, int max_positions) {
  const auto whole = [](int channels) { return channels % kTileChannels == 0; };
  const bool shapes = whole(shape.width) && whole(shape.hidden) && shape.width % shape.heads == 0 &&
                      whole(shape.width / shape.heads) && shape.input % 4 == 0 &&
                      std::max(shape.input, shape.hidden) <= kMaxTileChannels &&
                      shape.kernel <= kMaxTileTaps && max_positions <= kMaxTilePositions;
  return shapes && weights.head.weight->type == GGML_TYPE_Q8_0 &&
         std::ranges::all_of(
             weights.blocks,
             [&](const auto& block) { return all_fit(block, &block == &weights.blocks.front()); }) &&
         std::ranges::all_of(weights.tp_blocks, [](const auto& block) { return all_fit(block, false); });
}

TileGraph build_tiles(ggml_context* context, const TileOps& ops, ggml_tensor* input,
                      const SenseVoiceWeights& weights, const SenseVoiceShape& shape, int positions) {
  Builder builder(context, ops, shape, positions);
  auto* x = input;
  for (const auto& block : weights.blocks)
    x = builder.block(x, block, &block != &weights.blocks.front());
  x = builder.norm_panel(x, weights.after_norm); // the next block carries it
  for (const auto& block : weights.tp_blocks)
    x = builder.block(x, block, true);
  auto* heard = builder.norm(x, weights.tp_norm);
  return {heard, builder.scores(heard, weights.head)};
}

void read_packed(std::span<const uint16_t> packed, int position, std::span<float> row) {
  const auto place = static_cast<size_t>(position);
  const size_t values = 2 * static_cast<size_t>(packed_floats(static_cast<int64_t>(row.size())));
  const uint16_t* const tile = packed.data() + place / kTilePositions * values;
  for (size_t i = 0; i < row.size(); ++i) {
    const size_t pair = (i / 2 * kTilePositions + place % kTilePositions) * 2;
    const uint32_t bits = static_cast<uint32_t>(tile[pair + i % 2]) << 16U; // bfloat16
    std::memcpy(&row[i], &bits, sizeof bits);
  }
}

std::vector<float> to_panels(std::span<const float> rows, int width) {
  const auto channels = static_cast<size_t>(width);
  const size_t count = rows.size() / channels;
  const auto tiles = static_cast<size_t>(tiles_of(static_cast<int64_t>(count)));
  std::vector<float> panels(tiles * channels * kTilePositions);
  for (size_t row = 0; row < count; ++row) {
    float* const to = panels.data() + row / kTilePositions * channels * kTilePositions + row % kTilePositions;
    for (size_t i = 0; i < channels; ++i)
      to[i * kTilePositions] = rows[row * channels + i];
  }
  return panels;
}

std::vector<SenseVoicePeak> read_peaks(std::span<const float> scores, int vocabulary, int positions) {
  const auto tiles = static_cast<size_t>(tiles_of(positions));
  std::vector<ScoreState> states(kScoreParts * tiles);
  std::memcpy(states.data(), scores.data() + first_logits_floats(vocabulary),
              states.size() * sizeof(ScoreState));
  std::vector<SenseVoicePeak> peaks;
  for (int position = 0; position < positions; ++position) {
    const auto lane = static_cast<size_t>(position % kTilePositions);
    const auto state = [&](size_t part) -> const ScoreState& {
      return states[part * tiles + static_cast<size_t>(position / kTilePositions)];
    };
    float highest = -INFINITY;
    int32_t token = 0;
    for (size_t part = 0; part < kScoreParts; ++part) {
      if (state(part).highest[lane] > highest) {
        highest = state(part).highest[lane];
        token = state(part).token[lane];
      }
    }
    float sum = 0;
    for (size_t part = 0; part < kScoreParts; ++part)
      if (state(part).sum[lane] != 0) // a part without a token has no highest either
        sum += state(part).sum[lane] * std::exp(state(part).highest[lane] - highest);
    if (!std::isfinite(highest) || !std::isfinite(sum))
      throw Failure(StatusCode::inference_failed, "The model computed values that are not numbers");
    peaks.push_back({token, -std::log(sum)});
  }
  return peaks;
}

} // namespace voxgate

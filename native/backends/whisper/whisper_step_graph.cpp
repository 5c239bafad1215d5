#include "backends/whisper/whisper_step_graph.h"

#include "kernels/unmasked_attention.h"

#include <ggml-backend.h>

#include <algorithm>

namespace voxgate {
namespace {

// The inputs of all lanes are in two tensors, because each that is filled takes a call to the GPU.
constexpr const char* kRows = "rows_of_lanes";
constexpr const char* kMasks = "masks_of_lanes";

constexpr size_t kMaskPadding = 128; // values: no GPU wants tensors to begin at more than 256 bytes

size_t padded(size_t values) {
  return GGML_PAD(values, kMaskPadding);
}
size_t mask_values(const StepLane& lane) {
  return padded(lane.rows) + (lane.is_sparse ? padded(static_cast<size_t>(lane.positions)) : 0);
}

ggml_tensor* input(ggml_context* graph, const char* name, ggml_type type, size_t values) {
  auto* tensor = ggml_get_tensor(graph, name);
  if (tensor != nullptr)
    return tensor;
  tensor = ggml_new_tensor_1d(graph, type, static_cast<int64_t>(values));
  ggml_set_name(tensor, name);
  ggml_set_input(tensor);
  return tensor;
}

// The part of a mask that begins at this value.
ggml_tensor* mask_at(ggml_context* graph, std::span<const StepLane> lanes, size_t first, int64_t count) {
  size_t all = 0;
  for (const auto& lane : lanes)
    all += mask_values(lane);
  auto* masks = input(graph, kMasks, GGML_TYPE_F16, all);
  return ggml_view_2d(graph, masks, count, 1, ggml_row_size(GGML_TYPE_F16, count),
                      first * ggml_type_size(GGML_TYPE_F16));
}

// `rows` rows of a layer of a cache that has `size` in each, as a matrix for each head.
ggml_tensor* heads_of(ggml_context* graph, ggml_tensor* cache, int64_t rows, int64_t size,
                      const ggml_tensor* queries, int layer) {
  const int64_t width = queries->ne[0] * queries->ne[2];
  const auto row = ggml_row_size(cache->type, width);
  return ggml_view_3d(graph, cache, queries->ne[0], rows, queries->ne[2], row,
                      ggml_row_size(cache->type, queries->ne[0]), row * static_cast<size_t>(size * layer));
}

ggml_tensor* query_of(ggml_context* graph, ggml_tensor* queries, size_t lane) {
  return ggml_view_3d(graph, queries, queries->ne[0], 1, queries->ne[2], queries->nb[1], queries->nb[2],
                      lane * queries->nb[1]);
}

// `attend` gives the attention of a lane, whose masks begin at a value.
template <typename Attend>
ggml_tensor* each(ggml_context* graph, std::span<const StepLane> lanes, Attend attend) {
  ggml_tensor* columns = nullptr;
  size_t first = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    auto* attention = attend(i, first);
    auto* column = ggml_reshape_2d(graph, attention, ggml_nelements(attention), 1);
    columns = columns == nullptr ? column : ggml_concat(graph, columns, column, 1);
    first += mask_values(lanes[i]);
  }
  return columns;
}

} // namespace

void into_caches(ggml_context* graph, ggml_cgraph* nodes, std::span<const StepLane> lanes, ggml_tensor* keys,
                 ggml_tensor* values, int layer) {
  auto* rows = input(graph, kRows, GGML_TYPE_I64, lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) {
    auto* row = ggml_view_1d(graph, rows, 1, i * rows->nb[0]);
    const auto write = [&](ggml_tensor* cache, ggml_tensor* columns) {
      const auto bytes = ggml_row_size(cache->type, columns->ne[0]);
      auto* of_layer = ggml_view_2d(graph, cache, columns->ne[0], lanes[i].size, bytes,
                                    bytes * lanes[i].size * static_cast<size_t>(layer));
      auto* column = ggml_view_2d(graph, columns, columns->ne[0], 1, columns->nb[1], i * columns->nb[1]);
      ggml_build_forward_expand(nodes, ggml_set_rows(graph, of_layer, column, row));
    };
    write(lanes[i].text_keys, keys);
    write(lanes[i].text_values, values);
  }
}

ggml_tensor* attend_to_texts(ggml_context* graph, std::span<const StepLane> lanes, ggml_tensor* queries,
                             int layer) {
  return each(graph, lanes, [&](size_t i, size_t first) {
    const auto& lane = lanes[i];
    return ggml_flash_attn_ext(graph, query_of(graph, queries, i),
                               heads_of(graph, lane.text_keys, lane.rows, lane.size, queries, layer),
                               heads_of(graph, lane.text_values, lane.rows, lane.size, queries, layer),
                               mask_at(graph, lanes, first, lane.rows), 1.0F, 0, 0);
  });
}

ggml_tensor* attend_to_audios(ggml_context* graph, std::span<const StepLane> lanes, ggml_tensor* queries,
                              float scale, int layer) {
  return each(graph, lanes, [&](size_t i, size_t first) {
    const auto& lane = lanes[i];
    auto* offsets =
        lane.is_sparse ? mask_at(graph, lanes, first + padded(lane.rows), lane.positions) : nullptr;
    auto* attention = ggml_flash_attn_ext(
        graph, query_of(graph, queries, i),
        heads_of(graph, lane.audio_keys, lane.positions, lane.positions, queries, layer),
        heads_of(graph, lane.audio_values, lane.positions, lane.positions, queries, layer), offsets, scale, 0,
        0);
    if (lane.is_sparse)
      tell_same_rows(attention);
    return attention;
  });
}

void fill_inputs(ggml_cgraph* nodes, std::span<const StepLane> lanes, std::span<const StepInputs> inputs) {
  std::vector<int64_t> rows;
  std::vector<uint16_t> masks;
  for (size_t i = 0; i < lanes.size(); ++i) {
    rows.push_back(inputs[i].row);
    for (const auto* values : {&inputs[i].text_mask, &inputs[i].audio_offsets}) {
      masks.insert(masks.end(), values->begin(), values->end());
      masks.resize(padded(masks.size()));
    }
  }
  auto* of_rows = ggml_graph_get_tensor(nodes, kRows);
  auto* of_masks = ggml_graph_get_tensor(nodes, kMasks);
  ggml_backend_tensor_set(of_rows, rows.data(), 0, ggml_nbytes(of_rows));
  ggml_backend_tensor_set(of_masks, masks.data(), 0, ggml_nbytes(of_masks));
}

} // namespace voxgate

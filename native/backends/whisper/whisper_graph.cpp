#include "backends/whisper/whisper_graph.h"

#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_seams.h"
#include "kernels/unmasked_attention.h"

#include <algorithm>
#include <numeric>

namespace voxgate {
namespace {

constexpr int kPositionPadding = 256; // whisper.cpp's

// The names of the inputs. All layers of a graph share them.
constexpr const char* kScoreOffsets = "score_offsets"; // of the window, a row for each token
constexpr const char* kCacheRows = "cache_rows";       // that the step writes

template <typename Make> ggml_tensor* shared_input(ggml_context* graph, const char* name, Make make) {
  auto* input = ggml_get_tensor(graph, name);
  if (input != nullptr)
    return input;
  input = make();
  ggml_set_name(input, name);
  ggml_set_input(input);
  return input;
}

} // namespace

int padded_positions(const CallScope* call, int positions) {
  if (call == nullptr)
    return GGML_PAD(positions, kPositionPadding);
  ++seam_counts.exact_positions;
  return positions;
}

ggml_tensor* places(const CallScope* call, ggml_context* graph, ggml_tensor* of_all_positions,
                    int positions) {
  const auto rows = [&](int64_t count, int first, int stride) {
    const auto row = of_all_positions->nb[1];
    return ggml_view_2d(graph, of_all_positions, of_all_positions->ne[0], count,
                        row * static_cast<size_t>(stride), row * static_cast<size_t>(first));
  };
  if (call == nullptr || !call->window().is_sparse())
    return rows(positions, 0, 1);
  const auto& window = call->window();
  ++seam_counts.sparse_windows;
  return ggml_concat(graph, rows(window.dense, 0, 1),
                     rows(window.positions - window.dense, window.first_sparse(), window.stride), 1);
}

ggml_tensor* attend_to_audio(const CallScope* call, ggml_context* graph, ggml_tensor* queries,
                             ggml_tensor* keys, ggml_tensor* values, float scale) {
  if (call == nullptr || (!call->window().is_sparse() && call->parts().empty()))
    return ggml_flash_attn_ext(graph, queries, keys, values, nullptr, scale, 0, 0);
  auto* offsets = shared_input(graph, kScoreOffsets, [&] {
    return ggml_new_tensor_2d(graph, GGML_TYPE_F16, keys->ne[1], queries->ne[1]);
  });
  auto* attention = ggml_flash_attn_ext(graph, queries, keys, values, offsets, scale, 0, 0);
  if (call->parts().empty())
    tell_same_rows(attention);
  return attention;
}

ggml_tensor* alignment_scores(ggml_context* graph, std::span<const uint32_t> heads, ggml_tensor* queries,
                              ggml_tensor* keys, int positions, ggml_tensor* before) {
  ggml_tensor* scores = before;
  for (const uint32_t head : heads) {
    auto* key = ggml_view_2d(graph, keys, keys->ne[0], positions, keys->nb[1], head * keys->nb[2]);
    auto* query =
        ggml_view_2d(graph, queries, queries->ne[0], queries->ne[1], queries->nb[1], head * queries->nb[2]);
    auto* product = ggml_mul_mat(graph, key, ggml_cont(graph, query));
    scores = scores == nullptr ? product : ggml_concat(graph, scores, product, 2);
  }
  return scores;
}

ggml_tensor* wanted_rows(ggml_context* graph, ggml_tensor* rows, std::span<const int8_t> wanted,
                         int64_t most) {
  const auto tokens = rows->ne[1];
  int64_t first = wanted.empty() ? std::max<int64_t>(0, tokens - most) : 0;
  while (!wanted.empty() && first + 1 < tokens && wanted[static_cast<size_t>(first)] == 0)
    ++first;
  if (first == 0)
    return rows;
  ++seam_counts.shortened_logits;
  return ggml_view_2d(graph, rows, rows->ne[0], tokens - first, rows->nb[1],
                      static_cast<size_t>(first) * rows->nb[1]);
}

ggml_tensor* into_cache(ggml_context* graph, ggml_tensor* values, ggml_tensor* cache, uint32_t size,
                        int layer) {
  auto* rows = shared_input(graph, kCacheRows,
                            [&] { return ggml_new_tensor_1d(graph, GGML_TYPE_I64, values->ne[1]); });
  const auto row = ggml_row_size(cache->type, values->ne[0]);
  auto* of_layer =
      ggml_view_2d(graph, cache, values->ne[0], size, row, row * size * static_cast<size_t>(layer));
  return ggml_set_rows(graph, of_layer, values, rows);
}

void read_logits(const ggml_tensor* logits, std::vector<float>& values) {
  values.resize(static_cast<size_t>(ggml_nelements(logits)));
  ggml_backend_tensor_get(logits, values.data(), 0, ggml_nbytes(logits));
}

void fill_inputs(ggml_cgraph* graph, const CallScope& call) {
  auto* mask = ggml_graph_get_tensor(graph, kScoreOffsets);
  if (mask != nullptr) {
    const auto keys = static_cast<size_t>(mask->ne[0]);
    const auto all = score_offsets(call.window(), {0, call.window().dense}, keys);
    for (size_t row = 0; row < static_cast<size_t>(mask->ne[1]); ++row) {
      const auto& offsets =
          row < call.parts().size() ? score_offsets(call.window(), call.parts()[row], keys) : all;
      ggml_backend_tensor_set(mask, offsets.data(), row * mask->nb[1], mask->nb[1]);
    }
  }
  auto* rows = ggml_graph_get_tensor(graph, kCacheRows);
  if (rows != nullptr) {
    std::vector<int64_t> values(static_cast<size_t>(rows->ne[0]));
    std::iota(values.begin(), values.end(), call.cache_head());
    ggml_backend_tensor_set(rows, values.data(), 0, ggml_nbytes(rows));
  }
}

} // namespace voxgate

#include "backends/whisper/whisper_seams.h"

#include "backends/backend_proc.h"
#include "backends/large_pages.h"
#include "backends/spare_pages.h"
#include "backends/upstream_failure.h"
#include "backends/whisper/whisper_call_scope.h"

#include <ggml-alloc.h>
#include <ggml.h>

#include <numeric>
#include <vector>

namespace voxgate {
namespace {

constexpr int kPositionPadding = 256; // whisper.cpp's

bool in_large_pages(ggml_backend_buffer_t buffer) {
  if (buffer == nullptr || !ggml_backend_buffer_is_host(buffer))
    return false;
  ask_for_large_pages(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  return true;
}

void fill_score_offsets(ggml_cgraph* graph, const WhisperWindow& window) {
  ggml_tensor* mask = ggml_graph_get_tensor(graph, kScoreOffsets);
  if (mask == nullptr)
    return;
  const auto offsets = score_offsets(window, static_cast<size_t>(mask->ne[0]));
  for (int64_t row = 0; row < mask->ne[1]; ++row)
    ggml_backend_tensor_set(mask, offsets.data(), static_cast<size_t>(row) * mask->nb[1], mask->nb[1]);
}

void fill_cache_rows(ggml_cgraph* graph, int64_t first) {
  ggml_tensor* rows = ggml_graph_get_tensor(graph, kCacheRows);
  if (rows == nullptr)
    return;
  std::vector<int64_t> values(static_cast<size_t>(rows->ne[0]));
  std::iota(values.begin(), values.end(), first);
  ggml_backend_tensor_set(rows, values.data(), 0, ggml_nbytes(rows));
}

} // namespace

ggml_status compute_graph(ggml_backend_sched_t scheduler, ggml_cgraph* graph) {
  auto* call = CallScope::current();
  if (call != nullptr) {
    if (call->skips(scheduler)) {
      ++seam_counts.graphs_skipped;
      return GGML_STATUS_SUCCESS;
    }
    call->computing(scheduler);
    if (call->window().is_sparse())
      fill_score_offsets(graph, call->window());
    fill_cache_rows(graph, call->cache_head());
    const int threads = call->threads();
    for (int i = 0; i < ggml_backend_sched_get_n_backends(scheduler); ++i)
      set_backend_threads(ggml_backend_sched_get_backend(scheduler, i), threads);
    ++seam_counts.graphs;
    seam_counts.threads = threads;
  }
  const auto status = ggml_backend_sched_graph_compute(scheduler, graph);
  if (call != nullptr)
    call->computed(scheduler, graph);
  return status;
}

int padded_positions(int positions) {
  if (CallScope::current() == nullptr)
    return GGML_PAD(positions, kPositionPadding);
  ++seam_counts.exact_positions;
  return positions;
}

ggml_backend_buffer_t alloc_weights(ggml_context* context, ggml_backend_buffer_type_t type) {
  auto* buffer = needed_for_weights(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
  seam_counts.weights_in_large_pages += in_large_pages(buffer) ? 1 : 0;
  return buffer;
}

ggml_backend_buffer_t alloc_cache(ggml_context* context, ggml_backend_t backend) {
  auto* buffer = ggml_backend_alloc_ctx_tensors(context, backend);
  seam_counts.caches_in_large_pages += in_large_pages(buffer) ? 1 : 0;
  return buffer;
}

void clear_cache(ggml_backend_buffer_t buffer) {
  if (ggml_backend_buffer_is_host(buffer))
    clear_memory(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  else
    ggml_backend_buffer_clear(buffer, 0);
}

} // namespace voxgate

#include "backends/whisper/whisper_seams.h"

#include "backends/backend_proc.h"
#include "backends/pages.h"
#include "backends/upstream_failure.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_graph.h"

#include <ggml-alloc.h>
#include <ggml.h>

namespace voxgate {

ggml_status compute_graph(CallScope* call, ggml_backend_sched_t scheduler, ggml_cgraph* graph) {
  if (call != nullptr) {
    if (call->skips(scheduler)) {
      ++seam_counts.graphs_skipped;
      return GGML_STATUS_SUCCESS;
    }
    call->computing(scheduler);
    fill_inputs(graph, *call);
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

ggml_backend_buffer_t alloc_weights(ggml_context* context, ggml_backend_buffer_type_t type) {
  auto* buffer = needed_for_weights(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
  seam_counts.weights_in_large_pages += ask_for_large_pages(buffer) ? 1 : 0;
  return buffer;
}

ggml_backend_buffer_t alloc_cache(ggml_context* context, ggml_backend_t backend) {
  auto* buffer = ggml_backend_alloc_ctx_tensors(context, backend);
  seam_counts.caches_in_large_pages += ask_for_large_pages(buffer) ? 1 : 0;
  return buffer;
}

void clear_cache(ggml_backend_buffer_t buffer) {
  if (ggml_backend_buffer_is_host(buffer))
    clear_memory(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  else
    ggml_backend_buffer_clear(buffer, 0);
}

} // namespace voxgate

#pragma once

#include <ggml-backend.h>
#include <ggml.h>

namespace voxgate {

// What whisper.cpp calls instead of ggml's functions; the table in whisper_internals.cpp says where and why.

// The name of a mask in the graphs of whisper.cpp: the score offsets of the call's window, in each row.
constexpr const char* kScoreOffsets = "score_offsets";

// The name of an input in the decoder's graphs: the rows of the cache that the step writes.
constexpr const char* kCacheRows = "cache_rows";

// The decoder's graph of a step, which is kept for the next steps of the same shape.
struct StepGraph {
  ggml_cgraph* graph = nullptr; // null where there is none
  int tokens = 0;
  uint32_t rows = 0; // of the cache for texts that attention sees
};

// Instead of ggml_backend_sched_graph_compute: computes the graph with the threads of the call, unless it is
// one that the call skips, and with its score offsets, where it has some.
ggml_status compute_graph(ggml_backend_sched_t scheduler, ggml_cgraph* graph);

// Instead of GGML_PAD(positions, 256).
int padded_positions(int positions);

// Instead of ggml_backend_alloc_ctx_tensors_from_buft and ggml_backend_alloc_ctx_tensors: in large pages.
ggml_backend_buffer_t alloc_weights(ggml_context* context, ggml_backend_buffer_type_t type);
ggml_backend_buffer_t alloc_cache(ggml_context* context, ggml_backend_t backend);

// Instead of ggml_backend_buffer_clear(buffer, 0): on a CPU the memory is given back, and reads as zero.
void clear_cache(ggml_backend_buffer_t buffer);

// How often this thread has run the code of each seam. The tests read it, so that a seam which a new version
// of whisper.cpp no longer passes through is noticed; nothing else does.
struct SeamCounts {
  int spectrograms = 0;
  int spectrograms_skipped = 0;
  int prompts = 0;
  int alignments = 0;
  int shortened_logits = 0;
  int graphs = 0;
  int threads = 0; // of the last graph
  int graphs_skipped = 0;
  int exact_positions = 0;
  int sparse_windows = 0;
  int weights_in_large_pages = 0;
  int caches_in_large_pages = 0;
  int steps = 0; // of the decoder
  int step_graphs = 0;
};
inline constinit thread_local SeamCounts seam_counts;

} // namespace voxgate

#pragma once

#include <ggml-backend.h>
#include <ggml.h>

namespace voxgate {

// The seams: the places at which the copy of whisper.cpp that is compiled calls code of ours. What happens
// instead of upstream's, and why, stands at the top of each patch in native/patches/whisper. Here is the test
// that fails where it does not happen, in native/test/whisper_seams_test.cpp unless another file is named:
//
// log_mel_spectrogram: "the spectrogram is ours"
// alignment_scores: "words are aligned by our code", "tokens are aligned as they were decoded"
// wanted_rows, read_logits: "a prompt has logits from the start of the transcript on"
// clear_cache: "the cache for texts holds what a call needs, and nothing after it"
// whisper_context::vocabulary: "the views of a model share its vocabulary"
// shared_memory, moved_out: "the graphs of the audio share their memory"
// compute_graph: "graphs are computed with the threads of the call", "what a detection has encoded is not
//   encoded again, and nothing else is taken for it"
// into_cache, cache_padding, whisper_state::step: "the graph of a step is kept" (whisper_gpu_seams_test.cpp)
// padded_positions: "attention sees the positions of the audio and no others"
// places, attend_to_audio: "silence behind the audio is sparse" (whisper_window_test.cpp)
// whisper_init_state, whisper_free: test/deep/vulkan.test.ts
// alloc_weights, alloc_cache: "weights and caches lie in large pages"; test/deep/vulkan.test.ts

class CallScope;

// The decoder's graph of a step, which is kept for the next steps of the same shape.
struct StepGraph {
  ggml_cgraph* graph = nullptr; // null where there is none
  int tokens = 0;
  uint32_t rows = 0;   // of the cache for texts that attention sees
  bool aligns = false; // whether the scores of an alignment are kept
};

// Instead of ggml_backend_sched_graph_compute: computes the graph with the threads of the call, unless it is
// one that the call skips, and fills the inputs that are ours. `call` is null where none computes.
ggml_status compute_graph(CallScope* call, ggml_backend_sched_t scheduler, ggml_cgraph* graph);

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
  int tokens_aligned_as_decoded = 0;
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

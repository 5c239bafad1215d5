#pragma once

#include <ggml-backend.h>
#include <ggml.h>

namespace voxgate {

// The seams: the places at which the copy of whisper.cpp that is compiled (native/patches/whisper) calls code
// of ours. Each row names what is called, what happens instead of upstream's and why, and the test in
// native/test/whisper_seams_test.cpp that fails where it does not happen:
//
// log_mel_spectrogram
//   A fast Fourier transform instead of a naive one; nothing where the audio is already encoded.
//   Test: "the spectrogram is ours".
// alignment_scores
//   The scores of the few heads that an alignment needs, beside the flash attention. whisper.cpp has them
//   only in a state without flash attention, which is slower in everything. The alignment itself is
//   whisper_alignment.cpp. Tests: "words are aligned by our code", "tokens are aligned as they were decoded".
// wanted_rows, read_logits
//   Logits from the first token on for which they are wanted. whisper.cpp computes them for each token of a
//   prompt and makes room for them, 207 KB a token, also where it aligns words and computes none.
//   Test: "a prompt has logits from the start of the transcript on".
// clear_cache
//   Pages that are given back read as zero. whisper.cpp writes zeros into the cache for texts before each
//   prompt: 12 MB for five texts at once, of which most are then not used.
//   Test: "the cache for texts holds what a call needs, and nothing after it".
// whisper_context::vocabulary
//   The views of a model share it. Test: "the views of a model share its vocabulary".
// shared_memory, moved_out
//   On a CPU, one scheduler with its memory for the three graphs of the audio, which run one after the other.
//   What a graph leaves for the next one is moved out of that memory. whisper.cpp has a buffer for each.
//   Test: "the graphs of the audio share their memory".
// upstream_failed
//   An exception instead of the end of the process, where an assertion does not hold.
// compute_graph
//   ggml's function with the threads that the lane may use now; nothing where the audio is already encoded.
//   Tests: "graphs are computed with the threads of the call", "what a detection has encoded is not encoded
//   again, and nothing else is taken for it".
// into_cache, cache_padding, whisper_state::step
//   On a CPU and with CUDA the rows of the cache that a step writes are an input, and attention sees a
//   multiple of 32 or 256 of them. So the graph of a step is that of the step before: it is made once for
//   them, and CUDA launches it as a whole. whisper.cpp makes and launches it anew for each token.
//   Test: native/test/whisper_gpu_seams_test.cpp, "the graph of a step is kept".
// into_caches, attend_to_texts, attend_to_audios, whisper_state::lanes
//   With batched decoding one graph for the steps of several lanes (whisper_step_batcher.h).
//   Test: native/test/whisper_batched_test.cpp, "steps of several lanes are one graph".
// padded_positions
//   The positions without padding. whisper.cpp rounds the audio context up to a multiple of 256 and
//   attends to the positions in between without a mask. They hold zeros at first, which takes weight from the
//   speech, and later what an earlier call with a longer context left there: another caller's audio. While a
//   state is made they are rounded, so that its buffers are those of whisper.cpp. Test: "attention sees the
//   positions of the audio and no others".
// places
//   The places of the positions that are encoded, which may leave some out (whisper_window.h). whisper.cpp
//   encodes the first ones. Test: native/test/whisper_window_test.cpp, "silence behind the audio is sparse".
// attend_to_audio
//   Keys that stand for several positions count as often. Test: the same.
// whisper_init_state, whisper_free
//   What was made before an exception, or before a failure to load, is freed.
//   Test: test/deep/vulkan.test.ts.
// alloc_weights, alloc_cache
//   ggml's functions, and large pages under the memory, which is read from end to end for every token. Where
//   there is no memory for the weights, a failure: whisper.cpp goes on without.
//   Tests: "weights and caches lie in large pages"; test/deep/vulkan.test.ts.

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
  int batched_steps = 0; // computed with those of other lanes
  int most_lanes = 0;    // of them together
};
inline constinit thread_local SeamCounts seam_counts;

} // namespace voxgate

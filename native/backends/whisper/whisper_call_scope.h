#pragma once

#include "backends/thread_budget.h"
#include "backends/whisper/whisper_window.h"
#include "cancel.h"

#include <ggml-backend.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

struct whisper_state;

namespace voxgate {

// One call into whisper.cpp that computes something of a state: made before the call, by the thread that
// makes it, and gone after it. While it lives, the code of ours that whisper.cpp runs in between
// (whisper_seams.h) finds it in the state and does what the parameters of whisper.cpp cannot say:
//
//  - graphs are computed by as many threads as are this lane's share at that moment;
//  - graphs stop between two operations when the call is cancelled (on a CPU);
//  - attention sees the positions of the audio context and no others;
//  - silence behind the audio is sparse, and reaches to the end of the whole window;
//  - each token of a batch attends to its own part of the audio, after `set_parts`;
//  - the audio is not encoded again after `skip_encoding(true)`;
//  - memory that only a long window or a long text needs is given back.
//
// Without one, as while a state is made, whisper.cpp goes its own way.
class CallScope {
 public:
  CallScope(whisper_state& state, ThreadBudget& budget, const CancelToken& cancel);
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope();

  // A ggml_abort_callback whose user data is a CallScope.
  static bool should_abort(void* scope);

  // From here on no spectrogram is made, and graphs of the audio are built but not run: what they would write
  // is in the state already. The decoder is not concerned.
  void skip_encoding(bool skip) { skips_encoding_ = skip; }
  bool skips_encoding() const { return skips_encoding_; }
  bool skips(ggml_backend_sched_t graph) const {
    return skips_encoding_ && std::ranges::find(audio_graphs_, graph) != audio_graphs_.end();
  }

  // Tells that a graph will be computed, so that what the ones before have left is given back, and that it
  // was computed, so that the memory it used is known.
  void computing(ggml_backend_sched_t scheduler);
  void computed(ggml_backend_sched_t scheduler, ggml_cgraph* graph);

  // Tells which positions the graphs from here on encode, or attend to.
  void set_window(const WhisperWindow& window) { window_ = window; }
  const WhisperWindow& window() const { return window_; }

  // Tells which part of the window each token of the batches from here on attends to. Where there are none,
  // each one attends to all of it.
  void set_parts(std::vector<WindowPart> parts) { parts_ = std::move(parts); }
  std::span<const WindowPart> parts() const { return parts_; }

  int64_t cache_head() const;

  int threads() const { return turn_.threads(); }

 private:
  whisper_state& state_;
  const CancelToken& cancel_;
  ThreadBudget::Turn turn_;
  std::array<ggml_backend_sched_t, 3> audio_graphs_;
  WhisperWindow window_;
  std::vector<WindowPart> parts_;
  bool skips_encoding_ = false;
  bool was_audio_ = false; // of the last graph

  // The working memory of one scheduler, as its last graph had it.
  struct WorkingMemory {
    ggml_backend_sched_t scheduler = nullptr;
    ggml_backend_buffer_t buffer = nullptr;
    size_t bytes = 0;
  };
  void give_back(std::span<const WorkingMemory> memories) const;
  std::array<WorkingMemory, 4> working_; // one for each of whisper.cpp's schedulers
};

} // namespace voxgate

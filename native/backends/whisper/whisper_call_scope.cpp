#include "backends/whisper/whisper_call_scope.h"

#include "backends/pages.h"
#include "backends/whisper/whisper_internals.h"

#include <ggml.h>

namespace voxgate {
namespace {

// whisper.cpp makes its buffers for a window of 30 s and a batch of as many tokens as the decoder can hold.
// Most chunks have at most 8 s and most batches a few tokens. So this part of each buffer is kept, and what
// a longer window or batch needed goes back to the system.
constexpr size_t kKeptOfAudio = 4;   // a quarter
constexpr size_t kKeptOfTokens = 16; // a sixteenth

ggml_backend_buffer_t working_buffer(ggml_cgraph* graph) {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    auto* buffer = ggml_graph_node(graph, i)->buffer;
    if (buffer != nullptr && ggml_backend_buffer_get_usage(buffer) == GGML_BACKEND_BUFFER_USAGE_COMPUTE)
      return ggml_backend_buffer_is_host(buffer) ? buffer : nullptr;
  }
  return nullptr;
}

size_t buffer_bytes(ggml_backend_sched_t scheduler) {
  const int last = ggml_backend_sched_get_n_backends(scheduler) - 1; // the CPU
  return ggml_backend_sched_get_buffer_size(scheduler, ggml_backend_sched_get_backend(scheduler, last));
}

void keep_part(std::span<std::byte> memory, size_t part) {
  const auto spare = memory.subspan(memory.size() / part);
  give_back_pages(spare.data(), spare.size());
}

} // namespace

CallScope::CallScope(whisper_state& state, ThreadBudget& budget, const CancelToken& cancel)
    : state_(state), cancel_(cancel), turn_(budget), audio_graphs_(whisper_internals::audio_graphs(state)) {
  whisper_internals::set_graph_abort(state, should_abort, this);
  whisper_internals::set_call(state, this);
}

CallScope::~CallScope() {
  whisper_internals::set_call(state_, nullptr);
  whisper_internals::set_graph_abort(state_, nullptr, nullptr);
  give_back(working_);
  for (const auto scratch : whisper_internals::scratch_memory(state_))
    keep_part(scratch, kKeptOfTokens);
  const auto texts = whisper_internals::text_cache(state_);
  give_back_pages(texts.data(), texts.size());
}

void CallScope::computed(ggml_backend_sched_t scheduler, ggml_cgraph* graph) {
  const auto known = std::ranges::find_if(working_, [&](const WorkingMemory& memory) {
    return memory.scheduler == scheduler || memory.scheduler == nullptr;
  });
  if (known == working_.end())
    return;
  auto* buffer = working_buffer(graph);
  *known = {scheduler, buffer, buffer != nullptr ? ggml_backend_buffer_get_size(buffer) : 0};
}

void CallScope::computing(ggml_backend_sched_t scheduler) {
  const bool of_audio = std::ranges::find(audio_graphs_, scheduler) != audio_graphs_.end();
  if (was_audio_ && !of_audio)
    give_back(working_); // the decoder reads the caches and nothing of this
  was_audio_ = of_audio;
}

void CallScope::give_back(std::span<const WorkingMemory> memories) const {
  for (const auto& [scheduler, buffer, bytes] : memories) {
    // A scheduler that has failed to get a larger buffer has freed this one.
    if (buffer == nullptr || buffer_bytes(scheduler) != bytes)
      continue;
    const bool of_audio = std::ranges::find(audio_graphs_, scheduler) != audio_graphs_.end();
    keep_part({static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer)), bytes},
              of_audio ? kKeptOfAudio : kKeptOfTokens);
  }
}

int64_t CallScope::cache_head() const {
  return whisper_internals::cache_head(state_);
}

bool CallScope::should_abort(void* scope) {
  return static_cast<const CallScope*>(scope)->cancel_.cancelled();
}

} // namespace voxgate

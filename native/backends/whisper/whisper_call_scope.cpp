#include "backends/whisper/whisper_call_scope.h"

#include "backends/whisper/whisper_internals.h"

namespace voxgate {
namespace {

constinit thread_local CallScope* t_current = nullptr;

} // namespace

CallScope::CallScope(const whisper_context& context, whisper_state& state, ThreadBudget& budget,
                     const CancelToken& cancel)
    : state_(&state), cancel_(cancel), turn_(budget), audio_graphs_(whisper_internals::audio_graphs(state)),
      exact_positions_(!whisper_internals::uses_gpu(context)) {
  whisper_internals::set_graph_abort(state, should_abort, this);
  t_current = this;
}

CallScope::~CallScope() {
  t_current = nullptr;
  if (state_ != nullptr)
    whisper_internals::set_graph_abort(*state_, nullptr, nullptr);
}

CallScope* CallScope::current() {
  return t_current;
}

bool CallScope::should_abort(void* scope) {
  return static_cast<const CallScope*>(scope)->cancel_.cancelled();
}

} // namespace voxgate

#pragma once

#include "harness.h"
#include "synthetic_whisper.h"

#include "backends/whisper/whisper_internals.h"

#include <whisper.h>

#include <memory>

namespace voxgate::test {

// Holds what the C API alone gives: a model and a state without our backend around them.
struct Upstream {
  Upstream() {
    const auto path = temporary("synthetic.bin");
    write_file(path, synthetic_whisper(4));
    auto params = whisper_context_default_params();
    params.use_gpu = false;
    context.reset(whisper_init_from_file_with_params_no_state(path.c_str(), params));
    whisper_internals::choose_alignment_heads(*context);
    state.reset(whisper_init_state(context.get()));
  }
  std::unique_ptr<whisper_context, void (*)(whisper_context*)> context{nullptr, whisper_free};
  std::unique_ptr<whisper_state, void (*)(whisper_state*)> state{nullptr, whisper_free_state};
};

} // namespace voxgate::test

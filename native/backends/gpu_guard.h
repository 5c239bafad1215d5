#pragma once

#include "backends/registry.h"

namespace voxgate {

// A GPU can run out of memory or be lost at any time, and ggml then ends the process. A backend that is
// loaded by this function throws Failure instead (out_of_memory if that was the reason) and refuses every
// later call. What it holds on the GPU is in an unknown state, so it is never freed. A backend on the CPU is
// returned without a guard.
std::unique_ptr<Backend> load_guarded(BackendFactory load, const LoadOptions& options,
                                      const CancelToken& cancel);

} // namespace voxgate

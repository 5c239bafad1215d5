#pragma once

#include "backends/registry.h"

namespace voxgate {

// A GPU can run out of memory or be lost at any time, and ggml then ends the process. A backend loaded
// through here throws Failure instead (out_of_memory where that was it), and refuses every later call: what
// it holds on the GPU is in an unknown state and is left alone, never freed. On the CPU the backend is handed
// on as it is.
std::unique_ptr<Backend> load_guarded(BackendFactory load, const LoadOptions& options,
                                      const CancelToken& cancel);

} // namespace voxgate

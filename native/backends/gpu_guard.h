#pragma once

#include "backends/registry.h"

#include <functional>

namespace voxgate {

// A GPU can run out of memory or be lost at any time, and ggml then ends the process. Here that becomes a
// Failure, in one of two ways:
//
// Out of memory: an exception, which frees on its way what was being made, as a GPU that is only full still
// frees. The backend of the call is freed too and refuses every later call.
//
// Anything else: the GPU is lost for the whole process, because CUDA then refuses every later call, that to
// free memory as well, and ggml ends the process for that again. No destructor may run: control comes back by
// a jump, all backends on a GPU are kept as they are until the process ends, and every later call of one and
// every load are refused.
//
// ggml's CUDA code ends the process in both cases. Its Vulkan code throws vk::SystemError, and ends the
// process where that would leave a destructor (cmake/vulkan.cmake).

// A backend on a GPU behind this guard; one on the CPU is returned as it is. Throws Failure{out_of_memory} or
// Failure{load_failed} if the GPU fails.
std::unique_ptr<Backend> load_guarded(BackendFactory load, const LoadOptions& options,
                                      const CancelToken& cancel);

// Asks a GPU something. False if it failed or was lost before; `question` may then have been left half way.
bool ask_gpu(const std::function<void()>& question);

// An error line of ggml's log. It holds the reason that the text of the abort after it does not.
void note_gpu_error(const char* line);

} // namespace voxgate

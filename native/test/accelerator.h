#pragma once

#include <ggml-backend.h>

#include <functional>

namespace voxgate::test {

// Registers a device in front of the CPU, as a GPU is one, that computes on the CPU. It is there until the
// process ends. `made` gets each of its backends, and how many there are with it. A second call only changes
// `made`.
void register_accelerator(std::function<void(ggml_backend_t, int)> made = {});

int accelerator_backends();

} // namespace voxgate::test

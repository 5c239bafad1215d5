#pragma once

#include <ggml-backend.h>

namespace voxgate {

// A function that only some of ggml's compute backends have, by the name that ggml gives it; null where this
// one has none. `Function` is the pointer type that ggml-backend.h declares for it.
template <typename Function> Function backend_proc(ggml_backend_t backend, const char* name) {
  ggml_backend_dev_t device = ggml_backend_get_device(backend);
  ggml_backend_reg_t reg = device != nullptr ? ggml_backend_dev_backend_reg(device) : nullptr;
  return reg != nullptr ? reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(reg, name)) : nullptr;
}

// Only a CPU computes with threads.
inline void set_backend_threads(ggml_backend_t backend, int threads) {
  if (auto set = backend_proc<ggml_backend_set_n_threads_t>(backend, "ggml_backend_set_n_threads"))
    set(backend, threads);
}

// On a CPU, graphs of this backend stop between two operations once `should_abort` says so; null takes it
// back.
inline void set_backend_abort(ggml_backend_t backend, ggml_abort_callback should_abort, void* user_data) {
  if (auto set = backend_proc<ggml_backend_set_abort_callback_t>(backend, "ggml_backend_set_abort_callback"))
    set(backend, should_abort, user_data);
}

} // namespace voxgate

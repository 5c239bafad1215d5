#pragma once

// What the patched copies of whisper.cpp and parakeet.cpp (native/patches) use where a failure would end the
// process.
#include "status.h"

#include <ggml-backend.h>

#include <string>

namespace voxgate {

// An assertion of the library does not hold. All of its functions are C++ and let an exception pass.
[[noreturn]] inline void upstream_failed(const char* condition) {
  throw Failure(StatusCode::inference_failed, std::string("An assertion of the engine failed: ") + condition);
}

// Without a buffer, which a GPU with little memory may refuse, the libraries would read the weights into
// nothing.
inline ggml_backend_buffer_t needed_for_weights(ggml_backend_buffer_t buffer) {
  if (buffer == nullptr)
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the weights");
  return buffer;
}

} // namespace voxgate

#pragma once

// What the patched copies of whisper.cpp and parakeet.cpp (family.cmake) use in the place of abort().
#include "status.h"

#include <string>

namespace voxgate {

// An assertion of the library does not hold. All of its functions are C++ and let an exception pass.
[[noreturn]] inline void upstream_failed(const char* condition) {
  throw Failure(StatusCode::inference_failed, std::string("An assertion of the engine failed: ") + condition);
}

} // namespace voxgate

#pragma once

#include "backend.h"

namespace voxgate {

// Whisper on whisper.cpp and ggml. The retry policy (temperatures, windows, loops) belongs to the caller: a
// chunk is decoded once with what was asked for and nothing is judged or dropped.
std::unique_ptr<Backend> load_whisper(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate

#pragma once

#include "backend.h"

namespace voxgate {

// Parakeet TDT on parakeet.cpp and ggml. The model hears its 25 languages without being told which one is
// spoken and does not say which one it heard; language, prompt, temperature and window of ChunkOptions mean
// nothing to it. It cannot translate. Times come with every token, whether words were asked for or not.
std::unique_ptr<Backend> load_parakeet(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate

#pragma once

#include "backend.h"

namespace voxgate {

// Parakeet TDT on parakeet.cpp and ggml. The model recognizes its 25 languages without being given one and
// does not report which one it recognized; it ignores language, prompt, temperature and window of
// ChunkOptions. Keywords are looked for ahead of the decoder. It cannot translate. Every token has times,
// also when no words were requested.
std::unique_ptr<Backend> load_parakeet(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate

#pragma once

#include "backend.h"

namespace voxgate {

// SenseVoice Small on ggml, from a GGUF file: one pass of an encoder, no decoder, so a chunk is one graph and
// at most one segment. Prompt, temperature and the bounds of a decoder mean nothing to it.
std::unique_ptr<Backend> load_sensevoice(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate

#pragma once

#include "backend.h"

namespace voxgate {

// Whisper on whisper.cpp and ggml. The caller decides what to try again (temperatures, windows, loops): a
// chunk is decoded once with the options it was given, and no result is judged or dropped.
std::unique_ptr<Backend> load_whisper(const LoadOptions& options, const CancelToken& cancel);

// The number of lanes of a model on the CPU, 1 or more. `lane_bytes` is the working memory of one lane.
int lane_count(uint64_t lane_bytes, int threads);

// The same on a GPU, which has `free_bytes` of memory beside the weights.
int gpu_lane_count(uint64_t lane_bytes, uint64_t free_bytes, int threads);

} // namespace voxgate

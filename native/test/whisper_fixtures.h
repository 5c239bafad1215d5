#pragma once

#include "backend.h"

#include <memory>
#include <string>
#include <vector>

namespace voxgate::test {

// Loads a model of random weights (synthetic_whisper.h) on the CPU.
std::unique_ptr<Backend> load_synthetic(unsigned seed, int threads = 1);

// Gives a sound that is no speech, the same every time.
std::vector<float> noise(size_t count);

// Reads the first 30 s of a recording of speech.
std::vector<float> speech();

// Asks for English and at most 30 tokens a window, because the random weights seldom end by themselves.
ChunkOptions english();

std::string text_of(const std::vector<Segment>& segments);

size_t count_tokens(const std::vector<Segment>& segments);

// Checks that times are inside the chunk and never fall.
void check_times(const std::vector<Segment>& segments, int64_t limit_ms);

} // namespace voxgate::test

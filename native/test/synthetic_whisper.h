#pragma once

#include <cstdint>
#include <string>

namespace voxgate::test {

// The smallest numbers with which a model still decodes as the published ones do.
struct SyntheticShape {
  int32_t width = 64;
  int32_t audio_context = 1500;
  int32_t text_context = 448;
  int32_t words = 50257;
  float places = 1; // how much a token depends on its place in the text; with 0 the text is a loop
};

// Makes a Whisper file with the shape of a very small multilingual model and random weights, as f16. It
// decodes nonsense, but through all of the real code. The same seed makes the same file.
std::string synthetic_whisper(unsigned seed, const SyntheticShape& shape = {});

} // namespace voxgate::test

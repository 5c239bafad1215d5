#pragma once

#include <string>

namespace voxgate::test {

// Makes a Whisper file with the shape of a very small multilingual model and random weights, as f16. It
// decodes nonsense, but through all of the real code. The same seed makes the same file.
std::string synthetic_whisper(unsigned seed);

} // namespace voxgate::test

#pragma once

#include <string>

namespace voxgate::test {

// A Whisper file with the shape of a very small multilingual model and random weights, as f16: it decodes
// nonsense, but through all of the real code. The same seed makes the same file.
std::string synthetic_whisper(unsigned seed);

} // namespace voxgate::test

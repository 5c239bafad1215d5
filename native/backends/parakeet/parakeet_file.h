#pragma once

#include "models/ggml_file.h"

#include <cstdint>

namespace voxgate {

struct ParakeetFile {
  uint64_t weight_bytes = 0;
  int32_t vocabulary = 0; // token ids below this spell text; the blank comes after them
};

// Reads the whole file but the data of its tensors; throws Failure{load_failed} unless it is a complete
// Parakeet TDT model in the format of whisper.cpp, with every tensor of the expected shape and type.
// parakeet.cpp takes the file at its word: it accepts one without weights, reads past a stack array for a
// tensor of five dimensions, and asserts.
ParakeetFile check_parakeet_file(GgmlFileReader& reader);

} // namespace voxgate

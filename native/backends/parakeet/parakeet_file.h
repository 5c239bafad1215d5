#pragma once

#include "models/ggml_file.h"

#include <cstdint>

namespace voxgate {

// Reads the whole file but the data of its tensors; throws Failure{load_failed} unless it is a complete
// Parakeet TDT model in the format of whisper.cpp, with every tensor of the expected shape and type.
// parakeet.cpp takes the file at its word: it accepts one without weights, reads past a stack array for a
// tensor of five dimensions, and asserts.
//
// Returns the number of text tokens. Their ids are below it, and the blank comes after them.
int32_t check_parakeet_file(GgmlFileReader& reader);

} // namespace voxgate

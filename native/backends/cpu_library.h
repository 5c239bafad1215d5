#pragma once

#include <filesystem>
#include <string>

// The library that computes on the CPU: ggml's, with our kernels in it. A build has one for its machine, or
// one for each level of instructions (kernels/cpu_level.h).

namespace voxgate {

// The folder of the library that this code was linked into. Compute libraries are installed beside it.
std::filesystem::path library_folder();

// Loads the library of this level, and what of our loops depends on it. `auto` is the best one that the
// processor has. Only the first call acts; a later one may only name the same level, or `auto`. Throws
// Failure{invalid_argument} for another level, or one that this build or this processor does not have. Where
// no library can be used, `auto` loads nothing and missing_cpu_library() says why.
void use_cpu(const std::string& level);

// The level that is in use, such as `avx2`, and `amx` where kernels may use its tiles; empty without a
// library.
std::string cpu_level();

// Why there is no library, for a build where there is none.
std::string missing_cpu_library();

} // namespace voxgate

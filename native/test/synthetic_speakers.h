#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace voxgate::test {

// The tensors of a file of the networks for speakers, with random weights that keep numbers in range.
struct SyntheticTensor {
  std::vector<int64_t> shape; // the outermost dimension first
  std::vector<float> values;
};
std::map<std::string, SyntheticTensor> synthetic_speakers();

// The tensors as a GGUF file.
std::string speakers_file(const std::map<std::string, SyntheticTensor>& tensors,
                          const std::string& architecture = "voxgate-diarization");

} // namespace voxgate::test

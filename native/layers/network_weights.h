#pragma once

#include "models/gguf_file.h"

#include <map>
#include <string>
#include <vector>

namespace voxgate {

// The tensors of a GGUF file that this program has made (src/models/import/gguf-writer.ts), as floats. Each
// is taken once, under its name and with the shape that the network needs.
class NetworkWeights {
 public:
  // Throws Failure{load_failed} unless it is such a file and `architecture` is its general.architecture.
  NetworkWeights(const std::string& path, const std::string& architecture);

  // `shape` has the outermost dimension first, as in the papers and in torch. Throws Failure{load_failed} if
  // there is no such tensor, or a value of it is not finite.
  std::vector<float> take(const std::string& name, const std::vector<int64_t>& shape);

  // Throws Failure{load_failed} if a tensor was not taken.
  void require_all_taken() const;

 private:
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  GgufFile file_;
  std::map<std::string, Tensor> tensors_;
};

} // namespace voxgate

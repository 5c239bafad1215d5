#include "layers/network_weights.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>

namespace voxgate {

NetworkWeights::NetworkWeights(const std::string& path, const std::string& architecture) : file_(path) {
  if (file_.text("general.architecture") != architecture)
    file_.fail("it is not a file of " + architecture);
  for (const auto& tensor : file_.tensors())
    if (tensor.type != GGML_TYPE_F32)
      file_.fail("its tensor " + tensor.name + " has an unexpected type");
  file_.read_data(
      [this](const GgufTensor& tensor) {
        auto& target = tensors_[tensor.name];
        target.shape.assign(tensor.shape.rbegin(), tensor.shape.rend());
        target.values.resize(tensor.bytes / sizeof(float));
        return target.values.data();
      },
      [](const GgufTensor&) {});
}

std::vector<float> NetworkWeights::take(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    file_.fail("it has no tensor " + name);
  if (found->second.shape != shape)
    file_.fail("its tensor " + name + " has an unexpected shape");
  if (!std::ranges::all_of(found->second.values, [](float value) { return std::isfinite(value); }))
    file_.fail("its tensor " + name + " has a value that is not a number");
  auto values = std::move(found->second.values);
  tensors_.erase(found);
  return values;
}

void NetworkWeights::require_all_taken() const {
  if (!tensors_.empty())
    file_.fail("it has a tensor that does not belong to it: " + tensors_.begin()->first);
}

} // namespace voxgate

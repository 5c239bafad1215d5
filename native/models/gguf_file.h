#pragma once

#include "models/ggml_file.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

// Reads the GGUF container (versions 2 and 3) and checks every number. It does not use ggml's own reader,
// which asserts on some malformed files, divides by an extent of zero, and never compares the tensors with
// the size of the file.

namespace voxgate {

struct GgufTensor {
  std::string name;
  int32_t type = 0; // a ggml_type that exists
  std::vector<int64_t> shape;
  uint64_t offset = 0; // from the start of the data
  uint64_t bytes = 0;
};

// Every method throws Failure{load_failed}, which names the file, if the file does not hold what the caller
// reads.
class GgufFile {
 public:
  explicit GgufFile(const std::string& path);

  uint32_t number(const std::string& key) const { return value<uint32_t>(key); }
  bool flag(const std::string& key, bool fallback) const;
  const std::string& text(const std::string& key) const { return value<std::string>(key); }
  const std::vector<std::string>& texts(const std::string& key) const {
    return value<std::vector<std::string>>(key);
  }
  const std::vector<int32_t>& numbers(const std::string& key) const {
    return value<std::vector<int32_t>>(key);
  }

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // Reads the data of every tensor, in the order of the file. `target` returns the place for a tensor's
  // bytes, and `done` is called when they are there. It can be called once.
  void read_data(const std::function<void*(const GgufTensor&)>& target,
                 const std::function<void(const GgufTensor&)>& done);

  [[noreturn]] void fail(const std::string& reason) const { reader_.fail(reason); }

 private:
  // A monostate stands for a value of a type that is not used.
  using Value = std::variant<std::monostate, uint32_t, bool, std::string, std::vector<std::string>,
                             std::vector<int32_t>>;

  template <typename T> const T& value(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end())
      fail("it has no value for " + key);
    const T* typed = std::get_if<T>(&found->second);
    if (typed == nullptr)
      fail("its value for " + key + " has an unexpected type");
    return *typed;
  }

  void read_values(uint64_t count);
  void read_tensors(uint64_t count);
  Value read_value(uint32_t type);
  Value read_array();
  std::string read_text();
  void check_data(uint64_t alignment);

  GgmlFileReader reader_;
  uint64_t size_;
  std::map<std::string, Value> values_;
  std::vector<GgufTensor> tensors_;
};

} // namespace voxgate

#pragma once

#include "models/ggml_file.h"

// A model file for a library that trusts it. The file is open from the check of its header until its weights
// are loaded, so that another file of its name changes nothing. What the check has read comes from memory, so
// that the library sees those very bytes even if the file is written to meanwhile.

namespace voxgate {

class CheckedFile {
 public:
  explicit CheckedFile(const std::string& path) : reader_(path, &checked_) {}
  CheckedFile(const CheckedFile&) = delete;
  CheckedFile& operator=(const CheckedFile&) = delete;

  // For the check, which has to read everything but the data of the tensors, and skips that.
  GgmlFileReader& reader() { return reader_; }

  // For the library, once: a whisper_model_loader or a parakeet_model_loader. It refers to this object.
  template <typename Loader> Loader loader() {
    return {this,
            [](void* self, void* to, size_t size) {
              return static_cast<CheckedFile*>(self)->read(static_cast<char*>(to), size);
            },
            [](void* self) { return static_cast<CheckedFile*>(self)->at_end_; }, [](void*) {}};
  }

 private:
  size_t read(char* to, size_t size);

  CheckedBytes checked_;
  GgmlFileReader reader_;
  uint64_t position_ = 0; // of the library
  bool at_end_ = false;   // the library has asked for more than there is
};

} // namespace voxgate

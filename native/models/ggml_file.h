#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

// Reads the legacy ggml container (magic, header, tensors) and checks every number. whisper.cpp trusts these
// files: it allocates the sizes that they state, and it asserts, which ends the process. So each file is read
// here first.

namespace voxgate {

inline constexpr uint32_t kGgmlMagic = 0x67676d6c;

// True for a ggml_type that every compute backend can multiply with.
bool is_matrix_type(int32_t type);

struct TensorHeader {
  int32_t dims = 0;
  int32_t type = 0; // a ggml_type that is known and allowed in these files
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  std::string name;
  uint64_t elements = 0;
  uint64_t bytes = 0; // the size of the data that follows
};

// Every method throws Failure{load_failed}, which names the file, if the file does not hold what the caller
// reads.
class GgmlFileReader {
 public:
  explicit GgmlFileReader(const std::string& path);

  template <typename T> T read() {
    T value;
    read_bytes(&value, sizeof value);
    return value;
  }
  void read_bytes(void* target, uint64_t size);
  std::string read_string(uint64_t size);
  void skip(uint64_t size);
  // False at the end of the file. After true, the position is at the data of the tensor.
  bool read_tensor_header(TensorHeader& header);

  uint64_t remaining() const { return size_ - position_; }
  [[noreturn]] void fail(const std::string& reason) const;
  void require(bool condition, const char* reason) const {
    if (!condition)
      fail(reason);
  }

 private:
  std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0;
  uint64_t position_ = 0;
};

struct WhisperHparams {
  int32_t n_vocab, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer;
  int32_t n_text_ctx, n_text_state, n_text_head, n_text_layer, n_mels;
  int32_t ftype; // with the quantization version, as in the file
};

// The header of a Whisper file, with the bytes between the hparams and the first tensor (filters and
// vocabulary).
struct WhisperHeader {
  WhisperHparams hparams;
  std::vector<char> filters_and_vocabulary;
};

WhisperHeader read_whisper_header(GgmlFileReader& reader);

// Reads the whole file and returns the size of its weights in bytes. Throws Failure{load_failed} if it is not
// a complete Whisper model.
uint64_t check_whisper_file(const std::string& path);

} // namespace voxgate

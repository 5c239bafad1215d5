#pragma once

#include <ggml.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
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

// A tensor that a file must hold.
struct ExpectedTensor {
  std::array<int64_t, 4> shape;
  ggml_type type;
  std::vector<float>* target = nullptr; // gets its values; null where the data is skipped
};
using ExpectedTensors = std::map<std::string, ExpectedTensor>; // by their names

// Pieces of a file by their positions in it.
using CheckedBytes = std::map<uint64_t, std::string>;

// Every method throws Failure{load_failed}, which names the file, if the file does not hold what the caller
// reads. The constructor throws Failure{out_of_memory} if the system opens no more files.
class GgmlFileReader {
 public:
  // Adds everything that is read, but not what is skipped, to `kept`.
  explicit GgmlFileReader(const std::string& path, CheckedBytes* kept = nullptr);

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
  // The data of a tensor in f32 or f16, whose header was read.
  std::vector<float> read_floats(const TensorHeader& tensor);
  // Reads the tensors to the end of the file, which must be exactly these.
  void read_tensors(ExpectedTensors missing);
  // The type of the weights, of the number for it in the header of the file.
  ggml_type weight_type(int32_t ftype) const;

  uint64_t size() const { return size_; }
  uint64_t remaining() const { return size_ - position_; }
  // Reads from any place, as far as the file goes; the rest is zeros. Does not change the position.
  void read_at(uint64_t position, char* target, size_t size) const;
  // Has to be called when everything is read. The file may have been cut or written to meanwhile.
  void require_unchanged() const;
  [[noreturn]] void fail(const std::string& reason) const;
  void require(bool condition, const char* reason) const {
    if (!condition)
      fail(reason);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  // What changes when a file is written to or cut: its size in bytes, and its time in nanoseconds.
  using Stamp = std::array<int64_t, 2>;
  Stamp stamp() const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  CheckedBytes* kept_;
  Stamp opened_{};
  uint64_t size_ = 0;
  uint64_t position_ = 0;
};

struct WhisperHparams {
  int32_t n_vocab, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer;
  int32_t n_text_ctx, n_text_state, n_text_head, n_text_layer, n_mels;
  int32_t ftype; // with the quantization version, as in the file
};

// Reads the header of a Whisper file, up to the first tensor.
WhisperHparams read_whisper_header(GgmlFileReader& reader);

// Reads the whole file but the data of its tensors. Throws Failure{load_failed} if it is not a complete
// Whisper model.
void check_whisper_file(GgmlFileReader& reader);
inline void check_whisper_file(const std::string& path) {
  GgmlFileReader reader(path);
  check_whisper_file(reader);
}

} // namespace voxgate

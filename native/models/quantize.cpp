#include "models/quantize.h"

#include "models/ggml_file.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace voxgate {
namespace {

// A file that gets its name only when it is finished, and is removed otherwise.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& target) : target_(target), part_(target + ".part") {
    descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0)
      fail("open");
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
      ::unlink(part_.c_str());
    }
  }

  void write(const void* data, size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(descriptor_, bytes, size);
      if (written < 0) {
        if (errno == EINTR)
          continue;
        fail("write");
      }
      bytes += written;
      size -= static_cast<size_t>(written);
    }
  }

  void commit() {
    if (::fsync(descriptor_) != 0)
      fail("sync");
    if (::rename(part_.c_str(), target_.c_str()) != 0)
      fail("rename");
    ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  [[noreturn]] void fail(const char* action) const {
    throw Failure(StatusCode::load_failed, std::string("Cannot ") + action + " " + part_ + ": " +
                                               std::generic_category().message(errno));
  }

  std::string target_;
  std::string part_;
  int descriptor_ = -1;
};

bool stays_as_it_is(const TensorHeader& tensor) {
  return tensor.dims != 2 || tensor.name == "encoder.conv1.bias" || tensor.name == "encoder.conv2.bias" ||
         tensor.name == "encoder.positional_embedding" || tensor.name == "decoder.positional_embedding";
}

void write_header(AtomicFile& out, const TensorHeader& tensor, int32_t type) {
  const int32_t fixed[3] = {tensor.dims, static_cast<int32_t>(tensor.name.size()), type};
  out.write(fixed, sizeof fixed);
  for (int i = 0; i < tensor.dims; ++i) {
    const auto extent = static_cast<int32_t>(tensor.shape[static_cast<size_t>(i)]);
    out.write(&extent, sizeof extent);
  }
  out.write(tensor.name.data(), tensor.name.size());
}

void copy_tensor(GgmlFileReader& reader, AtomicFile& out, const TensorHeader& tensor) {
  write_header(out, tensor, tensor.type);
  const auto data = reader.read_string(tensor.bytes);
  out.write(data.data(), data.size());
}

void quantize_tensor(GgmlFileReader& reader, AtomicFile& out, const TensorHeader& tensor) {
  reader.require(tensor.type == GGML_TYPE_F32 || tensor.type == GGML_TYPE_F16, "it is quantized already");
  reader.require(tensor.shape[0] % ggml_blck_size(GGML_TYPE_Q8_0) == 0,
                 "a tensor does not fit the quantization");
  const auto values = reader.read_floats(tensor);
  const int64_t rows = tensor.shape[1];
  std::vector<uint8_t> packed(ggml_row_size(GGML_TYPE_Q8_0, tensor.shape[0]) * static_cast<size_t>(rows));
  const size_t size =
      ggml_quantize_chunk(GGML_TYPE_Q8_0, values.data(), packed.data(), 0, rows, tensor.shape[0], nullptr);
  write_header(out, tensor, GGML_TYPE_Q8_0);
  out.write(packed.data(), size);
}

} // namespace

void quantize_whisper_q8_0(const std::string& source, const std::string& target, const CancelToken& cancel) {
  // The whole file is checked first, so that a damaged one is refused before anything is written.
  check_whisper_file(source);
  std::error_code ignored;
  if (std::filesystem::equivalent(source, target, ignored))
    throw Failure(StatusCode::invalid_argument,
                  "Expected a target other than the source but received " + target);

  GgmlFileReader reader(source);
  read_whisper_header(reader);
  // It stays as it is but for the type of the weights. Behind it the reader goes on.
  std::string header(reader.size() - reader.remaining(), '\0');
  reader.read_at(0, header.data(), header.size());
  constexpr int32_t kType = GGML_QNT_VERSION * GGML_QNT_VERSION_FACTOR + GGML_FTYPE_MOSTLY_Q8_0;
  std::memcpy(&header[sizeof kGgmlMagic + offsetof(WhisperHparams, ftype)], &kType, sizeof kType);
  AtomicFile out(target);
  out.write(header.data(), header.size());

  TensorHeader tensor;
  while (reader.read_tensor_header(tensor)) {
    cancel.check();
    if (stays_as_it_is(tensor))
      copy_tensor(reader, out, tensor);
    else
      quantize_tensor(reader, out, tensor);
  }
  reader.require_unchanged();
  out.commit();
}

} // namespace voxgate

#include "models/ggml_file.h"

#include "status.h"

#include <ggml.h>

namespace voxgate {
namespace {

constexpr int32_t kMaxNameBytes = 256;
constexpr uint64_t kMaxElements = uint64_t{1} << 31; // whisper.cpp multiplies the shape in int32

} // namespace

bool is_matrix_type(int32_t type) {
  switch (type) {
  case GGML_TYPE_F32:
  case GGML_TYPE_F16:
  case GGML_TYPE_Q4_0:
  case GGML_TYPE_Q4_1:
  case GGML_TYPE_Q5_0:
  case GGML_TYPE_Q5_1:
  case GGML_TYPE_Q8_0:
  case GGML_TYPE_Q2_K:
  case GGML_TYPE_Q3_K:
  case GGML_TYPE_Q4_K:
  case GGML_TYPE_Q5_K:
  case GGML_TYPE_Q6_K:
    return true;
  default:
    return false;
  }
}

GgmlFileReader::GgmlFileReader(const std::string& path) : path_(path), file_(path, std::ios::binary) {
  file_.seekg(0, std::ios::end);
  const auto end = file_.tellg();
  file_.seekg(0, std::ios::beg);
  if (!file_ || end < 0)
    fail("it cannot be read");
  size_ = static_cast<uint64_t>(end);
}

void GgmlFileReader::fail(const std::string& reason) const {
  throw Failure(StatusCode::load_failed, "Cannot use model file " + path_ + ": " + reason);
}

void GgmlFileReader::read_bytes(void* target, uint64_t size) {
  require(size <= remaining(), "it ends too early");
  if (!file_.read(static_cast<char*>(target), static_cast<std::streamsize>(size)))
    fail("it cannot be read");
  position_ += size;
}

std::string GgmlFileReader::read_string(uint64_t size) {
  require(size <= remaining(), "it ends too early");
  std::string text(size, '\0');
  read_bytes(text.data(), size);
  return text;
}

void GgmlFileReader::skip(uint64_t size) {
  require(size <= remaining(), "it ends too early");
  file_.seekg(static_cast<std::streamoff>(size), std::ios::cur);
  position_ += size;
}

bool GgmlFileReader::read_tensor_header(TensorHeader& header) {
  if (remaining() == 0)
    return false;
  header = TensorHeader{};
  header.dims = read<int32_t>();
  const auto name_bytes = read<int32_t>();
  header.type = read<int32_t>();
  require(header.dims >= 0 && header.dims <= 4, "a tensor has an impossible number of dimensions");
  require(name_bytes > 0 && name_bytes <= kMaxNameBytes, "a tensor has an impossible name");
  require(is_matrix_type(header.type), "a tensor has an unknown type");
  header.elements = 1;
  for (int i = 0; i < header.dims; ++i) {
    const auto extent = read<int32_t>();
    require(extent > 0, "a tensor has an impossible shape");
    header.shape[static_cast<size_t>(i)] = extent;
    header.elements *= static_cast<uint64_t>(extent);
    require(header.elements < kMaxElements, "a tensor is too large");
  }
  header.name = read_string(static_cast<uint64_t>(name_bytes));
  const auto type = static_cast<ggml_type>(header.type);
  require(header.shape[0] % ggml_blck_size(type) == 0, "a tensor does not fit its quantization");
  header.bytes = header.elements / static_cast<uint64_t>(ggml_blck_size(type)) * ggml_type_size(type);
  require(header.bytes <= remaining(), "it ends too early");
  return true;
}

} // namespace voxgate

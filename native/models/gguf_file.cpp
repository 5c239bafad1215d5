#include "models/gguf_file.h"

#include <ggml.h>
#include <gguf.h>

#include <set>

namespace voxgate {
namespace {

constexpr uint32_t kMagic = 0x46554747; // "GGUF"
constexpr uint64_t kMaxValues = 4096;
constexpr uint64_t kMaxTensors = 8192;
constexpr uint64_t kMaxTexts = 1 << 18; // of one array; a vocabulary has fewer than 200,000 pieces
constexpr uint64_t kMaxTextBytes = 1 << 20;
constexpr uint64_t kMaxElements = uint64_t{1} << 31;
constexpr uint64_t kMaxAlignment = 1 << 16;

// The size in bytes of a value with a fixed size; 0 for all others.
uint64_t fixed_size(uint32_t type) {
  switch (type) {
  case GGUF_TYPE_UINT8:
  case GGUF_TYPE_INT8:
  case GGUF_TYPE_BOOL:
    return 1;
  case GGUF_TYPE_UINT16:
  case GGUF_TYPE_INT16:
    return 2;
  case GGUF_TYPE_UINT32:
  case GGUF_TYPE_INT32:
  case GGUF_TYPE_FLOAT32:
    return 4;
  case GGUF_TYPE_UINT64:
  case GGUF_TYPE_INT64:
  case GGUF_TYPE_FLOAT64:
    return 8;
  default:
    return 0;
  }
}

uint64_t padded(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

} // namespace

GgufFile::GgufFile(const std::string& path) : reader_(path), size_(reader_.remaining()) {
  reader_.require(reader_.read<uint32_t>() == kMagic, "it is not a GGUF file");
  const auto version = reader_.read<uint32_t>();
  reader_.require(version == 2 || version == 3, "its GGUF version is not supported");
  const auto tensor_count = reader_.read<uint64_t>();
  const auto value_count = reader_.read<uint64_t>();
  reader_.require(tensor_count <= kMaxTensors && value_count <= kMaxValues, "its header is implausible");
  read_values(value_count);
  read_tensors(tensor_count);
  const bool stated = values_.contains("general.alignment");
  check_data(stated ? number("general.alignment") : GGUF_DEFAULT_ALIGNMENT);
}

bool GgufFile::flag(const std::string& key, bool fallback) const {
  return values_.contains(key) ? value<bool>(key) : fallback;
}

void GgufFile::read_data(const std::function<void*(const GgufTensor&)>& target,
                         const std::function<void(const GgufTensor&)>& done) {
  uint64_t position = 0;
  for (const auto& tensor : tensors_) {
    reader_.skip(tensor.offset - position);
    reader_.read_bytes(target(tensor), tensor.bytes);
    position = tensor.offset + tensor.bytes;
    done(tensor);
  }
  reader_.require_unchanged();
}

std::string GgufFile::read_text() {
  const auto size = reader_.read<uint64_t>();
  reader_.require(size <= kMaxTextBytes, "a text in it is too long");
  return reader_.read_string(size);
}

void GgufFile::read_values(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    auto key = read_text();
    auto read = read_value(reader_.read<uint32_t>());
    if (!values_.emplace(std::move(key), std::move(read)).second)
      fail("it has two values for one key");
  }
}

GgufFile::Value GgufFile::read_value(uint32_t type) {
  switch (type) {
  case GGUF_TYPE_UINT32:
    return reader_.read<uint32_t>();
  case GGUF_TYPE_BOOL:
    return reader_.read<uint8_t>() != 0;
  case GGUF_TYPE_STRING:
    return read_text();
  case GGUF_TYPE_ARRAY:
    return read_array();
  default:
    reader_.require(fixed_size(type) > 0, "a value in it has an unknown type");
    reader_.skip(fixed_size(type));
    return {};
  }
}

GgufFile::Value GgufFile::read_array() {
  const auto type = reader_.read<uint32_t>();
  const auto count = reader_.read<uint64_t>();
  if (type == GGUF_TYPE_STRING) {
    // A text takes eight bytes of the file at least and four times that in memory, so that the size of the
    // file is no bound that would do.
    reader_.require(count <= kMaxTexts, "a list in it is too long");
    reader_.require(count <= reader_.remaining() / sizeof(uint64_t), "it ends too early");
    std::vector<std::string> texts(count);
    for (auto& text : texts)
      text = read_text();
    return texts;
  }
  const auto size = fixed_size(type);
  reader_.require(size > 0, "a value in it has an unknown type");
  reader_.require(count <= reader_.remaining() / size, "it ends too early");
  if (type != GGUF_TYPE_INT32) {
    reader_.skip(count * size);
    return {};
  }
  std::vector<int32_t> numbers(count);
  reader_.read_bytes(numbers.data(), count * size);
  return numbers;
}

void GgufFile::read_tensors(uint64_t count) {
  std::set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensor tensor;
    tensor.name = read_text();
    const auto dims = reader_.read<uint32_t>();
    reader_.require(dims >= 1 && dims <= GGML_MAX_DIMS, "a tensor has an impossible number of dimensions");
    uint64_t elements = 1;
    for (uint32_t dim = 0; dim < dims; ++dim) {
      const auto extent = reader_.read<uint64_t>();
      reader_.require(extent > 0 && extent < kMaxElements, "a tensor has an impossible shape");
      elements *= extent;
      reader_.require(elements < kMaxElements, "a tensor is too large");
      tensor.shape.push_back(static_cast<int64_t>(extent));
    }
    tensor.type = reader_.read<int32_t>();
    reader_.require(tensor.type >= 0 && tensor.type < GGML_TYPE_COUNT, "a tensor has an unknown type");
    const auto type = static_cast<ggml_type>(tensor.type);
    const auto block = ggml_blck_size(type); // 0 for types that ggml has dropped
    reader_.require(block > 0 && tensor.shape[0] % block == 0, "a tensor does not fit its quantization");
    tensor.bytes = elements / static_cast<uint64_t>(block) * ggml_type_size(type);
    tensor.offset = reader_.read<uint64_t>();
    reader_.require(names.insert(tensor.name).second, "it has two tensors of one name");
    tensors_.push_back(std::move(tensor));
  }
}

// Leaves the reader at the start of the data.
void GgufFile::check_data(uint64_t alignment) {
  reader_.require(alignment > 0 && alignment <= kMaxAlignment && (alignment & (alignment - 1)) == 0,
                  "its alignment is impossible");
  const uint64_t position = size_ - reader_.remaining();
  reader_.skip(padded(position, alignment) - position);
  uint64_t end = 0;
  for (const auto& tensor : tensors_) {
    reader_.require(tensor.offset % alignment == 0 && tensor.offset >= end, "its tensors overlap");
    reader_.require(tensor.bytes <= reader_.remaining() &&
                        tensor.offset <= reader_.remaining() - tensor.bytes,
                    "it ends too early");
    end = tensor.offset + tensor.bytes;
  }
}

} // namespace voxgate

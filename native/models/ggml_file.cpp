#include "models/ggml_file.h"

#include "status.h"

#include <algorithm>
#include <cerrno>
#include <ggml.h>
#include <sys/stat.h>

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

GgmlFileReader::GgmlFileReader(const std::string& path, CheckedBytes* kept)
    : path_(path), file_(std::fopen(path.c_str(), "rb")), kept_(kept) {
  if (!file_ && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    throw Failure(StatusCode::out_of_memory, "The system opens no more files");
  if (!file_)
    fail("it cannot be read");
  opened_ = stamp();
  size_ = static_cast<uint64_t>(opened_[0]);
}

GgmlFileReader::Stamp GgmlFileReader::stamp() const {
  struct stat info {};
  if (fstat(fileno(file_.get()), &info) != 0 || !S_ISREG(info.st_mode))
    fail("it cannot be read");
#ifdef __APPLE__
  const timespec changed = info.st_mtimespec;
#else
  const timespec changed = info.st_mtim;
#endif
  return {info.st_size, int64_t{changed.tv_sec} * 1'000'000'000 + changed.tv_nsec};
}

void GgmlFileReader::require_unchanged() const {
  require(stamp() == opened_, "it changed while it was read");
}

void GgmlFileReader::fail(const std::string& reason) const {
  throw Failure(StatusCode::load_failed, "Cannot use model file " + path_ + ": " + reason);
}

void GgmlFileReader::read_bytes(void* target, uint64_t size) {
  require(size <= remaining(), "it ends too early");
  auto* bytes = static_cast<char*>(target);
  if (std::fread(bytes, 1, size, file_.get()) != size)
    fail("it cannot be read");
  if (kept_ != nullptr) {
    const auto last = kept_->empty() ? kept_->end() : std::prev(kept_->end());
    if (last != kept_->end() && last->first + last->second.size() == position_)
      last->second.append(bytes, size);
    else
      kept_->emplace(position_, std::string(bytes, size));
  }
  position_ += size;
}

void GgmlFileReader::read_at(uint64_t position, char* target, size_t size) const {
  size_t read = 0;
  if (fseeko(file_.get(), static_cast<off_t>(position), SEEK_SET) == 0)
    read = std::fread(target, 1, size, file_.get());
  std::fill(target + read, target + size, '\0');
}

std::string GgmlFileReader::read_string(uint64_t size) {
  require(size <= remaining(), "it ends too early");
  std::string text(size, '\0');
  read_bytes(text.data(), size);
  return text;
}

void GgmlFileReader::skip(uint64_t size) {
  require(size <= remaining(), "it ends too early");
  position_ += size;
  if (fseeko(file_.get(), static_cast<off_t>(position_), SEEK_SET) != 0)
    fail("it cannot be read");
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

#include "models/ggml_file.h"

#include "status.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

namespace voxgate {
namespace {

constexpr int32_t kMaxNameBytes = 256;
constexpr uint64_t kMaxElements = uint64_t{1} << 31; // whisper.cpp multiplies the shape in int32

// What the weights of a file may be, by the number in its header.
constexpr std::array<std::pair<ggml_ftype, ggml_type>, 12> kWeightTypes{{
    {GGML_FTYPE_ALL_F32, GGML_TYPE_F32},
    {GGML_FTYPE_MOSTLY_F16, GGML_TYPE_F16},
    {GGML_FTYPE_MOSTLY_Q4_0, GGML_TYPE_Q4_0},
    {GGML_FTYPE_MOSTLY_Q4_1, GGML_TYPE_Q4_1},
    {GGML_FTYPE_MOSTLY_Q5_0, GGML_TYPE_Q5_0},
    {GGML_FTYPE_MOSTLY_Q5_1, GGML_TYPE_Q5_1},
    {GGML_FTYPE_MOSTLY_Q8_0, GGML_TYPE_Q8_0},
    {GGML_FTYPE_MOSTLY_Q2_K, GGML_TYPE_Q2_K},
    {GGML_FTYPE_MOSTLY_Q3_K, GGML_TYPE_Q3_K},
    {GGML_FTYPE_MOSTLY_Q4_K, GGML_TYPE_Q4_K},
    {GGML_FTYPE_MOSTLY_Q5_K, GGML_TYPE_Q5_K},
    {GGML_FTYPE_MOSTLY_Q6_K, GGML_TYPE_Q6_K},
}};

} // namespace

bool is_matrix_type(int32_t type) {
  return std::ranges::any_of(kWeightTypes, [type](const auto& known) { return known.second == type; });
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

std::vector<float> GgmlFileReader::read_floats(const TensorHeader& tensor) {
  std::vector<float> floats(tensor.elements);
  if (tensor.type == GGML_TYPE_F32) {
    read_bytes(floats.data(), tensor.bytes);
  } else {
    std::vector<ggml_fp16_t> halves(tensor.elements);
    read_bytes(halves.data(), tensor.bytes);
    ggml_fp16_to_fp32_row(halves.data(), floats.data(), static_cast<int64_t>(floats.size()));
  }
  return floats;
}

void GgmlFileReader::read_tensors(ExpectedTensors missing) {
  const size_t expected = missing.size();
  for (TensorHeader tensor; read_tensor_header(tensor);) {
    const auto found = missing.find(tensor.name);
    if (found == missing.end())
      fail("it holds an unknown tensor, or one twice: " + tensor.name);
    const auto& [shape, type, target] = found->second;
    if (shape != tensor.shape || type != tensor.type)
      fail("its tensor " + tensor.name + " has another shape or type than the header requires");
    if (target != nullptr)
      *target = read_floats(tensor);
    else
      skip(tensor.bytes);
    missing.erase(found);
  }
  // A file that was cut between two tensors is well-formed, and whisper.cpp even accepts one without weights.
  if (!missing.empty())
    fail("it holds " + std::to_string(expected - missing.size()) + " of " + std::to_string(expected) +
         " tensors");
}

ggml_type GgmlFileReader::weight_type(int32_t ftype) const {
  const auto* const found = std::ranges::find_if(kWeightTypes, [ftype](const auto& known) {
    return ftype >= 0 && known.first == ftype % GGML_QNT_VERSION_FACTOR;
  });
  require(found != kWeightTypes.end(), "its weight type is unknown");
  return found->second;
}

} // namespace voxgate

#include "harness.h"
#include "synthetic_whisper.h"

#include "models/ggml_file.h"
#include "models/quantize.h"

#include <filesystem>

using namespace voxgate;
using namespace voxgate::test;

namespace {

StatusCode check_bytes(const std::string& bytes) {
  const auto path = temporary("broken.bin");
  write_file(path, bytes);
  return failure_of([&] { check_whisper_file(path); });
}

std::string with_int(std::string bytes, size_t offset, int32_t value) {
  return bytes.replace(offset, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

bool refused_for(const std::string& bytes, const std::string& reason) {
  const auto path = temporary("broken.bin");
  write_file(path, bytes);
  return reason_of([&] { check_whisper_file(path); }).find(reason) != std::string::npos;
}

} // namespace

TEST("model file: a whole one is accepted") {
  const auto path = temporary("whole.bin");
  write_file(path, synthetic_whisper(1));
  GgmlFileReader reader(path);
  check_whisper_file(reader);
  CHECK(reader.size() > 1000000 && reader.remaining() == 0);
}

TEST("model file: every cut is refused") {
  const auto bytes = synthetic_whisper(1);
  for (const size_t size : {size_t{0}, size_t{3}, size_t{40}, size_t{1000}, size_t{300000}, bytes.size() - 1})
    CHECK(check_bytes(bytes.substr(0, size)) == StatusCode::load_failed);
}

TEST("model file: absurd numbers in the header are refused") {
  const auto bytes = synthetic_whisper(1);
  for (size_t field = 0; field < 14; ++field) { // magic, eleven hparams, two filter sizes
    for (const int32_t value : {-1, 0, 7, 1 << 30}) {
      auto broken = bytes;
      broken.replace(4 * field, 4, reinterpret_cast<const char*>(&value), 4);
      CHECK(check_bytes(broken) == StatusCode::load_failed);
    }
  }
}

TEST("model file: a number of the header may be as large as its limit, and no larger") {
  const auto bytes = synthetic_whisper(1);
  struct Limit {
    size_t field; // 1 is the first one behind the magic
    int32_t allowed;
    int32_t refused;
    const char* reason;
  };
  for (const Limit& limit :
       {Limit{1, 51866, 51867, "vocabulary is not one"}, Limit{1, 51864, 51863, "vocabulary is not one"},
        Limit{2, 1500, 1501, "audio context is out of range"},
        Limit{6, 448, 449, "text context is out of range"}, Limit{6, 16, 15, "text context is out of range"},
        Limit{9, 64, 65, "text layers is out of range"}, Limit{3, 4096, 4098, "width is out of range"},
        Limit{3, 32, 30, "width is out of range"}}) {
    const auto changed = [&](int32_t value) {
      const auto once = with_int(bytes, 4 * limit.field, value);
      return limit.field == 3 ? with_int(once, 4 * 7, value) : once; // encoder and decoder are as wide
    };
    CHECK(!refused_for(changed(limit.allowed), limit.reason));
    CHECK(refused_for(changed(limit.refused), limit.reason));
  }
}

TEST("model file: a word, a name and a tensor may be as large as their limits, and no larger") {
  const auto bytes = synthetic_whisper(1);
  constexpr size_t kWord = 4 * (1 + 11 + 2 + 80 * 201 + 1); // "w0" with a space in front, and its size
  const auto with_word = [&bytes](int32_t size) {
    return with_int(bytes, kWord, size).insert(kWord + 4, static_cast<size_t>(size) - 3, '-');
  };
  CHECK(!refused_for(with_word(1024), "Cannot use"));
  CHECK(refused_for(with_word(1025), "vocabulary is broken"));

  const auto name = bytes.find("encoder.positional_embedding");
  const size_t extents = name - 2 * 4;
  const auto with_name = [&](int32_t size) {
    return with_int(bytes, extents - 2 * 4, size).insert(name, 256, '-');
  };
  CHECK(refused_for(with_name(256), "unknown tensor"));
  CHECK(refused_for(with_name(257), "impossible name"));
  const auto with_shape = [&](int32_t rows) {
    return with_int(with_int(bytes, extents, 65536), extents + 4, rows);
  };
  CHECK(refused_for(with_shape(32767), "ends too early"));
  CHECK(refused_for(with_shape(32768), "too large"));
}

TEST("quantize: two-dimensional weights become q8_0, the file stays valid") {
  const auto source = temporary("f16.bin");
  const auto target = temporary("q8.bin");
  write_file(source, synthetic_whisper(2));
  quantize_whisper_q8_0(source, target, CancelToken());
  check_whisper_file(target);
  GgmlFileReader reader(target);
  const auto header = read_whisper_header(reader);
  CHECK(header.ftype == 2007);
  TensorHeader tensor;
  int quantized = 0;
  while (reader.read_tensor_header(tensor)) {
    const bool kept = tensor.dims != 2 || tensor.name.find("positional") != std::string::npos ||
                      tensor.name == "encoder.conv1.bias" || tensor.name == "encoder.conv2.bias";
    CHECK((tensor.type == 8) == !kept);
    quantized += kept ? 0 : 1;
    reader.skip(tensor.bytes);
  }
  CHECK(quantized == 1 + 4 * 6 + 4 * 10);
  CHECK(!std::filesystem::exists(target + ".part"));
}

TEST("quantize: a failure or a cancel leaves no file behind") {
  const auto source = temporary("f16.bin");
  const auto target = temporary("nothing.bin");
  const auto whole = synthetic_whisper(2);
  write_file(source, whole.substr(0, whole.size() - 10));
  CHECK(failure_of([&] { quantize_whisper_q8_0(source, target, CancelToken()); }) == StatusCode::load_failed);
  write_file(source, whole);
  CancelToken cancelled;
  cancelled.cancel();
  CHECK(failure_of([&] { quantize_whisper_q8_0(source, target, cancelled); }) == StatusCode::cancelled);
  CHECK(failure_of([&] { quantize_whisper_q8_0(source, source, CancelToken()); }) ==
        StatusCode::invalid_argument);
  CHECK(failure_of([&] { quantize_whisper_q8_0(source, "/nowhere/at/all.bin", CancelToken()); }) ==
        StatusCode::load_failed);
  CHECK(!std::filesystem::exists(target));
  CHECK(!std::filesystem::exists(target + ".part"));
  CHECK(read_file(source) == whole);
}

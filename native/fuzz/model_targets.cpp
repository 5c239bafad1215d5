// Any model file: read, checked and made ready as a request would have it, but nothing is recognized. A whole
// file is mostly weights, so that the inputs of most targets are edits of a sound file (target.h).
#include "target.h"

#include "backends/parakeet/parakeet_backend.h"
#include "backends/sensevoice/sensevoice_backend.h"
#include "backends/sensevoice/sensevoice_shape.h"
#include "backends/whisper/whisper_backend.h"
#include "models/ggml_file.h"
#include "models/gguf_file.h"
#include "synthetic_whisper.h"
#include "vad/silero.h"
#include "vorbis.h"

#include <ggml.h>

#include <array>
#include <fstream>
#include <numeric>
#include <sstream>

namespace voxgate::fuzz {
namespace {

std::string read_data(const std::string& name) {
  std::ostringstream bytes;
  bytes << std::ifstream(VOXGATE_TEST_DATA "/" + name, std::ios::binary).rdbuf();
  REQUIRE(!bytes.str().empty());
  return bytes.str();
}

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename Load> void load(const std::string& file, Load load) {
  const auto& path = write_input(bytes_of(file));
  try {
    load(path);
  } catch (const Failure& failure) {
    const auto code = failure.status().code;
    REQUIRE(code == StatusCode::load_failed || code == StatusCode::out_of_memory);
  }
}

// Loading takes half a second here, forty times as long as our check of the file, so that only some inputs
// are loaded: the first byte says whether.
constexpr uint8_t kLoad = 8;

void run_whisper(Bytes input) {
  static const auto whole = test::synthetic_whisper(1, {32, 16, 16, 300});
  const bool loads = input.empty() || input.front() < kLoad;
  load(edited(whole, input.empty() ? input : input.subspan(1)), [&](const std::string& path) {
    check_whisper_file(path);
    if (loads)
      load_whisper({"whisper", path, "cpu", 1}, CancelToken());
  });
}

void run_parakeet(Bytes input) {
  static const auto whole = read_data("parakeet-script.bin");
  load(edited(whole, input), [](const std::string& path) {
    load_parakeet({"parakeet", path, "cpu", 1}, CancelToken());
  });
}

void run_sensevoice(Bytes input) {
  static const auto whole = read_data("sensevoice/tones.gguf");
  load(edited(whole, input), [](const std::string& path) {
    load_sensevoice({"sensevoice", path, "cpu", 1}, CancelToken());
  });
}

// The container alone, which a small file can be; everything in it is read.
void run_gguf(Bytes input) {
  load({input.begin(), input.end()}, [&](const std::string& path) {
    GgufFile file(path);
    std::vector<char> data;
    uint64_t sum = 0;
    file.read_data(
        [&](const GgufTensor& tensor) {
          REQUIRE(tensor.bytes <= input.size());
          data.resize(tensor.bytes);
          return data.data();
        },
        [&](const GgufTensor&) { sum += std::accumulate(data.begin(), data.end(), uint64_t{0}); });
    auto shape = read_sensevoice_shape(file);
    const auto vocabulary = read_sensevoice_vocabulary(file, shape);
    REQUIRE(vocabulary.pieces.size() == vocabulary.spoken.size());
  });
}

void put_tensor(std::string& file, const std::string& name, ggml_type type,
                const std::vector<int32_t>& shape) {
  test::put(file, static_cast<int32_t>(shape.size()));
  test::put(file, static_cast<int32_t>(name.size()));
  test::put(file, static_cast<int32_t>(type));
  size_t size = ggml_type_size(type);
  for (const int32_t extent : shape) {
    test::put(file, extent);
    size *= static_cast<size_t>(extent);
  }
  file += name;
  file.append(size, '\x21');
}

// The network that silero_weights.cpp requires, with weights that are all the same.
std::string silero_file() {
  std::string file;
  test::put(file, kGgmlMagic);
  test::put(file, int32_t{10});
  file += "silero-16k";
  for (const int32_t number :
       {6, 2, 0, 512, 64, 4, 129, 128, 3, 128, 64, 3, 64, 64, 3, 64, 128, 3, 128, 128, 128, 1})
    test::put(file, number);
  put_tensor(file, "_model.stft.forward_basis_buffer", GGML_TYPE_F16, {256, 1, 258});
  const std::array<std::array<int32_t, 2>, 4> layers{{{129, 128}, {128, 64}, {64, 64}, {64, 128}}};
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto name = "_model.encoder." + std::to_string(i) + ".reparam_conv.";
    put_tensor(file, name + "weight", GGML_TYPE_F16, {3, layers[i][0], layers[i][1]});
    put_tensor(file, name + "bias", GGML_TYPE_F32, {layers[i][1]});
  }
  for (const std::string side : {"ih", "hh"}) {
    put_tensor(file, "_model.decoder.rnn.weight_" + side, GGML_TYPE_F32, {128, 512});
    put_tensor(file, "_model.decoder.rnn.bias_" + side, GGML_TYPE_F32, {512});
  }
  put_tensor(file, "_model.decoder.decoder.2.weight", GGML_TYPE_F16, {128});
  put_tensor(file, "_model.decoder.decoder.2.bias", GGML_TYPE_F32, {});
  return file;
}

void run_silero(Bytes input) {
  static const auto whole = silero_file();
  load(edited(whole, input), [](const std::string& path) { SileroVad model(path); });
}

// Each header number by itself, a cut, and no edit at all.
std::vector<std::string> header_edits() {
  std::vector<std::string> seeds{"", remove(64, 255), remove(5000, 255), replace(0, "GGUF")};
  for (uint32_t field = 0; field < 16; ++field)
    seeds.push_back(replace_number(field, field % 2 == 0 ? 0xFFFFFFFF : 3));
  return seeds;
}

std::vector<std::string> whisper_edits() {
  auto seeds = header_edits();
  for (size_t i = 0; i < seeds.size(); ++i)
    seeds[i].insert(0, 1, static_cast<char>(i < 2 ? 0 : kLoad));
  return seeds;
}

void put_text(std::string& file, std::string_view text) {
  test::put(file, static_cast<uint64_t>(text.size()));
  file += text;
}

std::vector<std::string> gguf_seeds() {
  std::string empty = "GGUF";
  for (const uint32_t number : {3U, 0U, 0U, 0U, 0U})
    test::put(empty, number);

  std::string full = "GGUF";
  test::put(full, uint32_t{3});
  test::put(full, uint64_t{1}); // tensors
  test::put(full, uint64_t{4}); // values
  put_text(full, "general.architecture");
  test::put(full, uint32_t{8});
  put_text(full, "sensevoice");
  put_text(full, "general.alignment");
  test::put(full, uint32_t{4});
  test::put(full, uint32_t{32});
  put_text(full, "tokenizer.ggml.tokens");
  test::put(full, uint32_t{9});
  test::put(full, uint32_t{8});
  test::put(full, uint64_t{2});
  put_text(full, "a");
  put_text(full, "<|zh|>");
  put_text(full, "tokenizer.ggml.token_type");
  test::put(full, uint32_t{9});
  test::put(full, uint32_t{5});
  test::put(full, uint64_t{2});
  test::put(full, uint64_t{1});
  put_text(full, "w");
  test::put(full, uint32_t{2});
  test::put(full, uint64_t{32});
  test::put(full, uint64_t{2});
  test::put(full, uint32_t{8}); // q8_0
  test::put(full, uint64_t{0});
  full.resize((full.size() + 31) / 32 * 32 + 68);
  return {empty, full};
}

} // namespace

extern const Target kWhisper{"whisper", run_whisper, whisper_edits};
extern const Target kParakeet{"parakeet", run_parakeet, header_edits};
extern const Target kGguf{"gguf", run_gguf, gguf_seeds};
extern const Target kSenseVoice{"sensevoice", run_sensevoice, header_edits};
extern const Target kSilero{"silero", run_silero, header_edits};

} // namespace voxgate::fuzz

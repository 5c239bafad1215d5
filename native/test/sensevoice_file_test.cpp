#include "harness.h"

#include "backends/sensevoice/sensevoice_backend.h"

#include <cstring>
#include <filesystem>
#include <optional>
#include <random>

using namespace voxgate;
using namespace voxgate::test;

namespace {

std::string whole_file() {
  return read_file(
      (std::filesystem::path(VOXGATE_TEST_DATA) / "sensevoice" / "random" / "model.gguf").string());
}

// Returns nothing when the file loads; any exception but a Failure ends the test program.
std::optional<Status> load(const std::string& bytes) {
  const auto path = temporary("model.gguf");
  write_file(path, bytes);
  try {
    load_sensevoice({"sensevoice", path, "cpu", 1}, {});
  } catch (const Failure& failure) {
    return failure.status();
  }
  return std::nullopt;
}

bool refused(const std::string& bytes, const std::string& reason) {
  const auto status = load(bytes);
  return status && status->code == StatusCode::load_failed &&
         status->message.find(reason) != std::string::npos;
}

std::string replaced(std::string bytes, const std::string& from, const std::string& to) {
  const auto at = bytes.find(from);
  CHECK(at != std::string::npos && from.size() == to.size());
  return bytes.replace(at, from.size(), to);
}

template <typename T> std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Overwrites bytes at a distance of `skip` behind the end of a text.
std::string overwritten(std::string bytes, const std::string& text, size_t skip, const std::string& value) {
  const auto at = bytes.find(text);
  CHECK(at != std::string::npos);
  return bytes.replace(at + text.size() + skip, value.size(), value);
}

size_t header_bytes(const std::string& bytes) {
  // The header ends with this tensor; 4 + 8 * dims + 4 + 8 bytes follow its name.
  return bytes.rfind("ctc.head.bias") + std::strlen("ctc.head.bias") + 24;
}

} // namespace

TEST("sensevoice file: a whole one is accepted") {
  CHECK(!load(whole_file()));
}

TEST("sensevoice file: every cut is refused") {
  const auto bytes = whole_file();
  const auto header = header_bytes(bytes);
  for (size_t size = 0; size < bytes.size(); size += size < header ? 37 : 5003)
    CHECK(refused(bytes.substr(0, size), ""));
  CHECK(refused(bytes.substr(0, bytes.size() - 1), "ends too early"));
}

TEST("sensevoice file: the part that does not fit is named") {
  const auto bytes = whole_file();
  const std::string encoder = "stt.sensevoice.encoder.";
  CHECK(refused("GGUX" + bytes.substr(4), "not a GGUF file"));
  CHECK(refused(std::string(bytes).replace(4, 4, raw(uint32_t{9})), "version"));
  CHECK(refused(std::string(bytes).replace(8, 8, raw(uint64_t{1} << 60)), "implausible"));
  CHECK(refused(std::string(bytes).replace(16, 8, raw(uint64_t{1} << 60)), "implausible"));
  CHECK(refused(replaced(bytes, "frontend.cmvn.shift", "frontend.cmvn.shifu"),
                "no tensor frontend.cmvn.shift"));
  CHECK(refused(replaced(bytes, "frontend.cmvn.scale", "frontend.cmvn.scalf"),
                "no tensor frontend.cmvn.scale"));
  CHECK(refused(replaced(bytes, "ctc.head.weight", "ctc.head.weighs"), "no tensor ctc.head.weight"));
  CHECK(refused(replaced(bytes, "enc.tp_norm.bias", "enc.tp_norm.bia2"), "no tensor enc.tp_norm.bias"));
  CHECK(refused(replaced(bytes, "kaldi_fbank_lfr", "kaldi_fbank_xyz"), "stt.frontend.type"));
  CHECK(refused(replaced(bytes, "per_feature", "global_mvn_"), "stt.frontend.normalize"));
  CHECK(refused(replaced(bytes, "<|nospeech|>", "<|nospeesh|>"), "<|nospeech|>"));
  CHECK(refused(replaced(bytes, encoder + "d_ff", encoder + "d_fg"), "no value for " + encoder + "d_ff"));
  CHECK(refused(overwritten(bytes, encoder + "n_blocks", 4, raw(uint32_t{1000000})), "n_blocks"));
  CHECK(refused(overwritten(bytes, encoder + "n_blocks", 4, raw(uint32_t{3})), "no tensor enc.encoders.1."));
  CHECK(refused(overwritten(bytes, encoder + "n_blocks", 4, raw(uint32_t{1})), "does not belong"));
  CHECK(refused(overwritten(bytes, encoder + "n_heads", 4, raw(uint32_t{5})), "heads"));
  CHECK(refused(overwritten(bytes, encoder + "kernel_size", 4, raw(uint32_t{10})), "center"));
  CHECK(refused(overwritten(bytes, encoder + "sanm_shift", 4, raw(uint32_t{1})), "sanm_shift"));
  CHECK(refused(overwritten(bytes, encoder + "d_model", 4, raw(uint32_t{64})), "unexpected shape"));
  CHECK(refused(overwritten(bytes, encoder + "d_model", 0, raw(uint32_t{6})), "")); // the type is a float now
  CHECK(refused(overwritten(bytes, "tokenizer.ggml.blank_token_id", 4, raw(uint32_t{48})), "blank_token_id"));
}

TEST("sensevoice file: tensors with false descriptions are refused") {
  const auto bytes = whole_file();
  const std::string name = "ctc.head.weight"; // dims u32, two extents u64, type u32 and offset u64 follow
  CHECK(refused(overwritten(bytes, name, 0, raw(uint32_t{0})), "dimensions"));
  CHECK(refused(overwritten(bytes, name, 0, raw(uint32_t{5})), "dimensions"));
  CHECK(refused(overwritten(bytes, name, 4, raw(uint64_t{0})), "impossible shape"));
  CHECK(refused(overwritten(bytes, name, 4, raw(~uint64_t{0})), "impossible shape"));
  CHECK(refused(overwritten(bytes, name, 4, raw(uint64_t{1} << 30)), "too large"));
  CHECK(refused(overwritten(bytes, name, 4, raw(uint64_t{33})), "")); // one more than the width
  CHECK(refused(overwritten(bytes, name, 20, raw(int32_t{-1})), "unknown type"));
  CHECK(refused(overwritten(bytes, name, 20, raw(int32_t{4})), "quantization")); // dropped by ggml
  CHECK(refused(overwritten(bytes, name, 20, raw(int32_t{16})), ""));            // iq2_xxs
  CHECK(refused(overwritten(bytes, name, 24, raw(uint64_t{0})), "overlap"));
  CHECK(refused(overwritten(bytes, name, 24, raw(uint64_t{1} << 62)), "ends too early"));
  CHECK(refused(overwritten(bytes, name, 24, raw(~uint64_t{31})), "ends too early"));
  CHECK(refused(overwritten(bytes, "enc.tp_norm.weight", 12, raw(int32_t{8})), "unexpected type")); // q8_0
}

TEST("sensevoice file: a list of more texts than a vocabulary has is refused before memory is asked for it") {
  std::string bytes = "GGUF" + raw(uint32_t{3}) + raw(uint64_t{0}) + raw(uint64_t{1});
  bytes += raw(uint64_t{1}) + "k" + raw(uint32_t{9}) + raw(uint32_t{8}); // a list of texts
  constexpr uint64_t kTexts = uint64_t{1} << 18;
  const std::string empty_texts(8 * (kTexts + 8), '\0');
  CHECK(refused(bytes + raw(kTexts + 1) + empty_texts, "a list in it is too long"));
  CHECK(refused(bytes + raw(kTexts) + empty_texts, "it has no value for general.architecture"));
}

TEST("sensevoice file: the parts of the container may be as large as their limits, and no larger") {
  const auto head = [](uint64_t tensors, uint64_t values) {
    return "GGUF" + raw(uint32_t{3}) + raw(tensors) + raw(values);
  };
  CHECK(refused(head(8192, 4096), "ends too early"));
  CHECK(refused(head(8193, 0), "implausible"));
  CHECK(refused(head(0, 4097), "implausible"));
  CHECK(refused(head(0, 1) + raw(uint64_t{1} << 20), "ends too early"));
  CHECK(refused(head(0, 1) + raw((uint64_t{1} << 20) + 1), "a text in it is too long"));
  const auto tensor = [&head](uint64_t extent) {
    return head(1, 0) + raw(uint64_t{1}) + "t" + raw(uint32_t{1}) + raw(extent) + raw(int32_t{0}) +
           raw(uint64_t{0});
  };
  CHECK(refused(tensor((uint64_t{1} << 31) - 1), "ends too early"));
  CHECK(refused(tensor(uint64_t{1} << 31), "impossible shape"));
  const auto aligned = [&head](uint32_t alignment) {
    const std::string key = "general.alignment";
    return head(0, 1) + raw(uint64_t{key.size()}) + key + raw(uint32_t{4}) + raw(alignment);
  };
  CHECK(refused(aligned(65536), "ends too early"));
  CHECK(refused(aligned(131072), "alignment is impossible"));
}

TEST("sensevoice file: a number of the header may be as large as its limit, and no larger") {
  const auto bytes = whole_file();
  const std::string encoder = "stt.sensevoice.encoder.";
  const std::string frontend = "stt.frontend.";
  for (const auto& [key, most] :
       std::initializer_list<std::pair<std::string, uint32_t>>{{encoder + "n_blocks", 128},
                                                               {encoder + "tp_blocks", 128},
                                                               {encoder + "d_model", 4096},
                                                               {encoder + "d_ff", 16384},
                                                               {encoder + "kernel_size", 31},
                                                               {frontend + "num_mels", 128},
                                                               {frontend + "lfr_m", 15},
                                                               {frontend + "lfr_n", 15}}) {
    const auto outside = key + " is outside";
    CHECK(!refused(overwritten(bytes, key, 4, raw(most)), outside));
    CHECK(refused(overwritten(bytes, key, 4, raw(most + 1)), outside));
  }
}

TEST("sensevoice file: a vocabulary may be as large as its limit, and no larger") {
  const auto bytes = whole_file();
  const std::string key = "tokenizer.ggml.tokens";
  const size_t count = bytes.find(key) + key.size() + 8; // behind the types of the list and of its texts
  const auto with_pieces = [&](uint64_t pieces) {
    uint64_t before = 0;
    std::memcpy(&before, bytes.data() + count, sizeof before);
    const auto more = static_cast<size_t>(8 * (pieces - before));
    return overwritten(bytes, key, 8, raw(pieces)).insert(count + 8, more, '\0');
  };
  CHECK(refused(with_pieces(200000), "pieces without a type"));
  CHECK(refused(with_pieces(200001), "impossible size"));
}

TEST("sensevoice file: changed bytes never end the process") {
  const auto bytes = whole_file();
  const auto header = header_bytes(bytes);
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < 600; ++i) {
    auto broken = bytes;
    for (int change = 0; change < 1 + i % 3; ++change) {
      const char values[] = {0, 1, static_cast<char>(0xff), static_cast<char>(0x80),
                             static_cast<char>(random())};
      broken[random() % header] = values[random() % sizeof values];
    }
    const auto status = load(broken);
    accepted += status ? 0 : 1;
    CHECK(!status || status->code == StatusCode::load_failed || status->code == StatusCode::out_of_memory);
  }
  CHECK(accepted > 0 && accepted < 600); // a letter of a piece may change, a size may not
}

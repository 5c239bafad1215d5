#include "harness.h"

#include "backends/sensevoice/sensevoice_backend.h"
#include "backends/sensevoice/sensevoice_encoder.h"
#include "backends/sensevoice/sensevoice_fbank.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

// The expected values come from kaldi-native-fbank and from funasr's own PyTorch class;
// test/native/generate-sensevoice.py made the files. VOXGATE_SENSEVOICE_CASES may name a folder with more of
// them, and VOXGATE_SENSEVOICE_MODEL a model of full size.

using namespace voxgate;
using namespace voxgate::test;
namespace fs = std::filesystem;

namespace {

const fs::path kData = fs::path(VOXGATE_TEST_DATA) / "sensevoice";

template <typename T> std::vector<T> read_array(const fs::path& path) {
  const auto bytes = read_file(path.string());
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Gives as many samples as asked for; the recording starts again where it ends.
std::vector<float> signal(size_t length) {
  const auto recorded = read_array<int16_t>(kData / "signal.s16");
  std::vector<float> samples(length);
  for (size_t i = 0; i < length; ++i)
    samples[i] = static_cast<float>(recorded[i % recorded.size()]) / 32768.0F;
  return samples;
}

struct Model {
  explicit Model(const fs::path& path)
      : file(path.string()), shape(read_sensevoice_shape(file)),
        vocabulary(read_sensevoice_vocabulary(file, shape)),
        encoder(file, shape, "cpu", 2, 3050, CancelToken()) {}

  std::vector<float> logits(const std::vector<float>& samples, const std::string& language,
                            bool normalize_text) {
    const auto frames =
        stack_frames(Fbank(shape.mels, kSenseVoiceFbank)(samples), shape.mels, shape.stack, shape.stride);
    const auto found = std::ranges::find(shape.languages, language, &SenseVoiceLanguage::code);
    const int32_t query = found == shape.languages.end() ? shape.auto_query : found->query;
    encoder.encode(frames, {query, 1, 2, normalize_text ? shape.itn_query : shape.plain_query},
                   CancelToken());
    std::vector<float> all;
    std::vector<float> row;
    for (int i = 0; i < encoder.positions(); ++i) {
      encoder.read_logits(i, row);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }

  GgufFile file;
  SenseVoiceShape shape;
  SenseVoiceVocabulary vocabulary;
  SenseVoiceEncoder encoder;
};

float distance(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::isfinite(a[i]) ? std::max(most, std::abs(a[i] - b[i])) : INFINITY;
  return most;
}

size_t best(const std::vector<float>& rows, size_t row, size_t width) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row * width);
  return static_cast<size_t>(std::max_element(begin, begin + static_cast<std::ptrdiff_t>(width)) - begin);
}

// Checks every file SAMPLES-LANGUAGE-ITN.f32 beside a model.
void check_cases(const fs::path& folder) {
  Model model(folder / "model.gguf");
  const auto width = static_cast<size_t>(model.shape.vocabulary);
  int cases = 0;
  float worst = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".f32")
      continue;
    const auto name = entry.path().stem().string();
    const auto language = name.substr(name.find('-') + 1, name.rfind('-') - name.find('-') - 1);
    const auto expected = read_array<float>(entry.path());
    const auto actual = model.logits(signal(std::stoul(name)), language, name.back() == '1');
    worst = std::max(worst, distance(actual, expected));
    for (size_t row = 0; row < expected.size() / width; ++row)
      CHECK(best(actual, row, width) == best(expected, row, width));
    ++cases;
  }
  std::cout << "     " << folder.filename().string() << ": " << cases << " cases, largest error " << worst
            << "\n";
  CHECK(cases > 0);
  CHECK(worst < 1e-4F);
}

} // namespace

TEST("sensevoice: fbank is Kaldi's") {
  const auto error =
      distance(Fbank(80, kSenseVoiceFbank)(signal(12800)), read_array<float>(kData / "fbank.f32"));
  std::cout << "     largest error " << error << "\n";
  CHECK(error < 2e-4F);
}

TEST("sensevoice: stacked frames repeat the edges") {
  const std::vector<float> rows{1, 2, 3, 4, 5};
  CHECK(stack_frames(rows, 1, 3, 2) == (std::vector<float>{1, 1, 2, 2, 3, 4, 4, 5, 5}));
  CHECK(stack_frames(std::vector<float>{1, 2}, 2, 3, 6) == (std::vector<float>{1, 2, 1, 2, 1, 2}));
}

TEST("sensevoice: logits are those of the reference") {
  check_cases(kData / "random");
  if (const char* further = std::getenv("VOXGATE_SENSEVOICE_CASES")) {
    for (const auto& entry : fs::directory_iterator(further))
      check_cases(entry.path());
  }
}

TEST("sensevoice: a call leaves nothing behind for the next ones") {
  Model model(kData / "random" / "model.gguf");
  const auto first = model.logits(signal(12800), "zh", true);
  CHECK(model.logits(signal(90000), "ko", false).size() > first.size());
  CancelToken cancelled;
  cancelled.cancel();
  const auto frames = std::vector<float>(static_cast<size_t>(model.shape.input) * 20);
  CHECK(failure_of([&] { model.encoder.encode(frames, {0, 1, 2, 14}, cancelled); }) == StatusCode::cancelled);
  CHECK(model.logits(signal(12800), "zh", true) == first);
}

TEST("sensevoice: the longest chunk and the shortest are recognized") {
  const auto backend =
      load_sensevoice({"sensevoice", (kData / "random" / "model.gguf").string(), "cpu", 2}, {});
  for (const size_t length : {size_t{1}, size_t{399}, size_t{1601}, kMaxChunkSamples}) {
    const auto samples = signal(length);
    const auto limit = static_cast<int64_t>(length * 1000 / kSampleRate);
    for (const auto& segment : backend->transcribe(samples, {}, {})) {
      int64_t before = 0;
      for (const auto& token : segment.tokens) {
        CHECK(before <= token.start_ms && token.start_ms <= token.end_ms && token.end_ms <= limit);
        before = token.start_ms;
      }
    }
    float sum = 0;
    const auto heard = backend->detect_language(samples, {0}, {});
    for (const auto& guess : heard.front())
      sum += guess.probability;
    CHECK(std::abs(sum - 1) < 1e-5F);
  }
}

TEST("sensevoice: a model of full size stops in the middle of its graph") {
  const auto path = weights_from("VOXGATE_SENSEVOICE_MODEL");
  using Clock = std::chrono::steady_clock;
  const auto ms = [](auto span) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  };
  const auto backend = load_sensevoice({"sensevoice", path, "cpu", 2}, {});
  std::cout << "     memory " << backend->info().memory_bytes / 1000000 << " MB\n";
  for (const int seconds : {10, 30}) {
    const auto samples = signal(static_cast<size_t>(seconds * kSampleRate));
    const auto start = Clock::now();
    backend->transcribe(samples, {}, {});
    std::cout << "     " << seconds << " s in " << ms(Clock::now() - start) << " ms\n";
    CancelToken cancel;
    Clock::time_point asked;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      asked = Clock::now();
      cancel.cancel();
    });
    const auto code = failure_of([&] { backend->transcribe(samples, {}, cancel); });
    canceller.join();
    const auto latency = ms(Clock::now() - asked);
    std::cout << "     stopped after " << latency << " ms\n";
    CHECK(code == StatusCode::cancelled);
    CHECK(latency < 500);
  }
}

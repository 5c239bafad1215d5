#include "harness.h"

#include "backend.h"
#include "backends/parakeet/parakeet_backend.h"
#include "backends/parakeet/parakeet_file.h"
#include "backends/parakeet/parakeet_internals.h"

#include <parakeet.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

using namespace voxgate;
using namespace voxgate::test;

// These tests cover what the addon's own tests cannot reach: graphs stopped half way, and hundreds of broken
// files.

namespace {

const std::string kModel = VOXGATE_TEST_DATA "/parakeet-script.bin"; // from generate-parakeet.py

std::vector<float> sweep(size_t count) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i)
    samples[i] = 0.3F * std::sin(static_cast<float>(i % 4000) * static_cast<float>(i % 4000) * 1e-5F);
  return samples;
}

std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const auto& segment : segments) {
    for (const auto& token : segment.tokens)
      text += token.bytes + "[" + std::to_string(token.start_ms) + "-" + std::to_string(token.end_ms) + "]";
  }
  return text;
}

// One thread is used because two, on a busy machine, wait for each other longer than these small graphs take.
std::unique_ptr<Backend> load(const std::string& path = kModel, int threads = 1) {
  return load_parakeet({"parakeet", path, "cpu", threads}, CancelToken());
}

std::string hear(Backend& model, size_t samples, const CancelToken& cancel = {}) {
  return text_of(model.transcribe(sweep(samples), {}, cancel));
}

// A file must never end the process; some changes only make a model that gives a senseless text.
bool is_refused(const std::string& content) {
  const auto path = temporary("broken-parakeet.bin");
  write_file(path, content);
  try {
    load(path)->transcribe(sweep(kSampleRate), {}, CancelToken());
    return false;
  } catch (const Failure& failure) {
    return failure.status().code == StatusCode::load_failed;
  }
}

std::string with_int(std::string content, size_t offset, int32_t value) {
  std::memcpy(content.data() + offset, &value, sizeof value);
  return content;
}

bool is_refused_for(const std::string& content, const std::string& reason) {
  const auto path = temporary("broken-parakeet.bin");
  write_file(path, content);
  return reason_of([&] {
           GgmlFileReader reader(path);
           check_parakeet_file(reader);
         }).find(reason) != std::string::npos;
}

} // namespace

TEST("parakeet: durations are read before the softmax swallows them") {
  CHECK(hear(*load(), kSampleRate).starts_with(" Hell[0-160]o[160-320],[320-320] Dr[400-560]"));
}

TEST("parakeet: a cancelled graph stops between two operations") {
  auto params = parakeet_context_default_params();
  params.use_gpu = false;
  const std::unique_ptr<parakeet_context, void (*)(parakeet_context*)> context(
      parakeet_init_from_file_with_params_no_state(kModel.c_str(), params), parakeet_free);
  const std::unique_ptr<parakeet_state, void (*)(parakeet_state*)> state(parakeet_init_state(context.get()),
                                                                         parakeet_free_state);
  const auto samples = sweep(2 * kSampleRate);
  parakeet_pcm_to_mel_with_state(context.get(), state.get(), samples.data(), static_cast<int>(samples.size()),
                                 1);
  // This function checks no callback of its own, so only the graph can notice.
  const auto encode = [&] { return parakeet_encode_with_state(context.get(), state.get(), 0, 1); };
  CancelToken cancel;
  parakeet_internals::set_graph_abort(*state, &cancel);
  CHECK(encode() == 0);
  cancel.cancel();
  CHECK(encode() != 0);
  parakeet_internals::set_graph_abort(*state, nullptr);
  CHECK(encode() == 0);
}

TEST("parakeet: an abort at any moment leaves the model as it was") {
  const auto model = load(kModel, 2);
  const size_t count = 10 * kSampleRate;
  const auto expected = hear(*model, count);
  int cancelled = 0;
  for (int i = 0; i < 16; ++i) {
    CancelToken cancel;
    std::thread other([&cancel, i] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
      cancel.cancel();
    });
    std::string heard = expected;
    try {
      heard = hear(*model, count, cancel);
    } catch (const Failure& failure) {
      cancelled += failure.status().code == StatusCode::cancelled ? 1 : 0;
    }
    other.join();
    CHECK(heard == expected);
    CHECK(i % 8 != 0 || hear(*model, count) == expected);
  }
  CHECK(cancelled > 0);
}

TEST("parakeet: any length and digital silence are heard, with times inside the clip") {
  const auto model = load();
  for (const size_t count :
       {size_t{1}, size_t{159}, size_t{160}, size_t{320}, size_t{8001}, kMaxChunkSamples}) {
    int64_t last = 0;
    const auto segments = model->transcribe(sweep(count), {}, CancelToken());
    // At least half a second is recognized, however little of it the clip fills.
    CHECK(segments.size() == 1 && segments[0].tokens.size() >= 4 && segments[0].tokens[0].bytes == " Hell");
    for (const auto& segment : segments) {
      for (const auto& token : segment.tokens) {
        CHECK(token.start_ms >= last && token.end_ms >= token.start_ms);
        CHECK(token.end_ms <= static_cast<int64_t>(count / 16));
        last = token.start_ms;
      }
    }
    model->transcribe(std::vector<float>(count), {}, CancelToken());
  }
}

TEST("parakeet: a request for a translation or a language detection is refused") {
  const auto model = load();
  ChunkOptions options;
  options.translate = true;
  CHECK(failure_of([&] { model->transcribe(sweep(16000), options, CancelToken()); }) ==
        StatusCode::invalid_argument);
  CHECK(failure_of([&] { model->detect_language(sweep(16000), {0}, CancelToken()); }) ==
        StatusCode::invalid_argument);
}

TEST("parakeet: files cut anywhere are refused") {
  const auto good = read_file(kModel);
  CHECK(!is_refused(good));
  for (size_t size = 0; size < good.size(); size += 251)
    CHECK(is_refused(good.substr(0, size)));
  CHECK(is_refused(good + "x"));
}

TEST("parakeet: a header that contradicts the rest is refused") {
  const auto good = read_file(kModel);
  for (size_t field = 0; field < 16; ++field) {
    for (const int32_t value : {-1, 0, 3, 1 << 20, std::numeric_limits<int32_t>::max()}) {
      const auto changed = with_int(good, field * 4, value);
      // Our own context replaces the file's, and three tokens a frame are as good as ten.
      const bool harmless = changed == good || (value == 3 && (field == 2 || field == 15));
      CHECK(is_refused(changed) != harmless);
    }
  }
}

TEST("parakeet: a number of the header may be as large as its limit, and no larger") {
  const auto good = read_file(kModel);
  struct Limit {
    size_t field; // 1 is the first one behind the magic
    int32_t allowed;
    int32_t refused;
    const char* reason;
  };
  for (const Limit& limit :
       {Limit{1, 65536, 65537, "vocabulary is out of range"},
        Limit{2, 65536, 65537, "audio context is out of range"},
        Limit{3, 4096, 4098, "width is out of range"}, Limit{5, 64, 65, "audio layers is out of range"},
        Limit{6, 256, 264, "mel bands is out of range"}, Limit{8, 4096, 8192, "FFT size is out of range"},
        Limit{8, 32, 16, "FFT size is out of range"}, Limit{10, 1024, 1025, "channels is out of range"},
        Limit{11, 63, 65, "kernel is out of range"}, Limit{12, 4096, 4097, "decoder width is out of range"},
        Limit{13, 2, 3, "decoder layers is out of range"}, Limit{14, 64, 65, "durations is out of range"},
        Limit{15, 100, 101, "tokens per frame is out of range"}}) {
    CHECK(!is_refused_for(with_int(good, 4 * limit.field, limit.allowed), limit.reason));
    CHECK(is_refused_for(with_int(good, 4 * limit.field, limit.refused), limit.reason));
  }
  const auto wide = with_int(good, 4 * 3, 4096);
  CHECK(!is_refused_for(with_int(wide, 4 * 4, 64), "attention heads"));
  CHECK(is_refused_for(with_int(wide, 4 * 4, 128), "attention heads"));
}

TEST("parakeet: a duration and a word may be as large as their limits, and no larger") {
  const auto good = read_file(kModel);
  constexpr size_t kDurations = 68 + 4 + 16 * 33 * 4 + 4 + 64 * 4;
  CHECK(!is_refused_for(with_int(good, kDurations, 256), "Cannot use"));
  CHECK(is_refused_for(with_int(good, kDurations, 257), "durations"));
  constexpr size_t kWord = kDurations + 6 * 4 + 4; // the size of "<unk>"
  const auto with_word = [&good](int32_t size) {
    return with_int(good, kWord, size).insert(kWord + 4, static_cast<size_t>(size) - 5, '-');
  };
  CHECK(!is_refused_for(with_word(1024), "Cannot use"));
  CHECK(is_refused_for(with_word(1025), "vocabulary is broken"));
}

TEST("parakeet: tables that the hparams would index wrongly are refused") {
  const auto good = read_file(kModel);
  constexpr size_t kBins = 68;                            // behind the hparams and the number of bands
  constexpr size_t kWindow = kBins + 4 + 16 * 33 * 4;     // behind the filters
  constexpr size_t kWords = kWindow + 4 + 64 * 4 + 6 * 4; // behind the window and six durations
  const std::string more(16 * 4, '\0');
  CHECK(is_refused(with_int(good, kBins, 34).insert(kWindow, more)));
  CHECK(is_refused(with_int(good, kWindow, 80).insert(kWindow + 4, more)));
  CHECK(is_refused(with_int(good, kWords - 4, 1000)));
  CHECK(is_refused(with_int(good, kWords, 29).erase(kWords + 4, 4 + 5))); // the first, "<unk>", is missing
}

TEST("parakeet: tensors that are not as expected are refused") {
  const auto good = read_file(kModel);
  const auto first = good.find("encoder.pre_encode.out.weight");
  const size_t dims = first - 2 * 4 - 3 * 4; // two extents, then type, name length and number of dimensions
  for (const int32_t value : {-1, 5, 1000})
    CHECK(is_refused(with_int(good, dims, value)));
  for (const int32_t type : {0, 2, 7, 31}) // the tensor is f16
    CHECK(is_refused(with_int(good, dims + 8, type)));
  auto twice = good;
  twice.replace(twice.find("joint.enc.bias"), 5, "jOint");
  CHECK(is_refused(twice));
  auto other = good;
  const auto bias = other.find("norm_conv.bias");
  other.replace(bias, 14, "norm_conv.bia\0", 14);
  CHECK(is_refused(other));
}

TEST("parakeet: random damage never ends the process") {
  const auto good = read_file(kModel);
  // The regions are the hparams, the tables with the first tensors, and the whole file.
  const size_t regions[] = {64, 4096, good.size()};
  std::mt19937 random(7);
  int refused = 0;
  for (size_t i = 0; i < 120; ++i) {
    auto content = good;
    for (int n = 0; n < 3; ++n)
      content[random() % regions[i % 3]] = static_cast<char>(random());
    refused += is_refused(content) ? 1 : 0;
  }
  CHECK(refused >= 40);
}

TEST("parakeet: numbers that are not finite are a failure, not a text") {
  auto content = read_file(kModel);
  const std::string name = "joint.joint_net.2.bias";
  for (size_t at = content.find(name) + name.size(); at + 4 <= content.size(); at += 4)
    std::memcpy(content.data() + at, "\0\0\xc0\x7f", 4); // NaN
  const auto path = temporary("nan-parakeet.bin");
  write_file(path, content);
  const auto model = load(path);
  CHECK(failure_of([&] { hear(*model, kSampleRate); }) == StatusCode::inference_failed);
}

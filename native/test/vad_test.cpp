#include "harness.h"

#include "audio/audio_file.h"
#include "vad/silero.h"

#include <cmath>

using namespace voxgate;
using namespace voxgate::test;

TEST("vad: other files are refused") {
  const auto path = temporary("vad.bin");
  write_file(path, "not a model at all, but longer than a header");
  CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  CHECK(failure_of([&] { SileroVad vad(temporary("missing.bin")); }) == StatusCode::load_failed);
}

TEST("vad: every cut and changed header of the real file is refused") {
  const auto bytes = read_file(weights_from("VOXGATE_TEST_VAD"));
  const auto path = temporary("vad.bin");
  for (const size_t size : {size_t{4}, size_t{60}, size_t{500}, bytes.size() / 2, bytes.size() - 1}) {
    write_file(path, bytes.substr(0, size));
    CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  }
  for (size_t field = 30; field < 106; field += 4) { // from the window to the last layer
    auto broken = bytes;
    broken[field] = static_cast<char>(broken[field] ^ 0x21);
    write_file(path, broken);
    CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  }
}

TEST("vad: blocks of a stream give what one call gives") {
  SileroVad vad(weights_from("VOXGATE_TEST_VAD"));
  AudioFile file(VOXGATE_SAMPLE_MP3);
  const auto samples = file.read(16000 * 20);
  const auto whole = vad.probabilities(samples, true, CancelToken());
  CHECK(whole.size() == (samples.size() + 511) / 512);
  std::vector<float> joined;
  const std::span<const float> all(samples);
  for (size_t begin = 0; begin < all.size(); begin += 512 * 10) {
    const auto block = all.subspan(begin, std::min<size_t>(512 * 10, all.size() - begin));
    for (const float probability : vad.probabilities(block, begin == 0, CancelToken()))
      joined.push_back(probability);
  }
  CHECK(joined.size() == whole.size());
  for (size_t i = 0; i < whole.size(); ++i)
    CHECK(std::fabs(joined[i] - whole[i]) < 1e-6F);
  CHECK(*std::max_element(whole.begin(), whole.end()) > 0.9F);
  const std::vector<float> silence(512 * 50);
  const auto quiet = vad.probabilities(silence, true, CancelToken());
  CHECK(*std::max_element(quiet.begin(), quiet.end()) < 0.2F);
  CancelToken cancelled;
  cancelled.cancel();
  CHECK(failure_of([&] { vad.probabilities(samples, true, cancelled); }) == StatusCode::cancelled);
}

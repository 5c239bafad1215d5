#include "harness.h"

#include "backend.h"

#include <thread>

using namespace voxgate;
using namespace voxgate::test;

namespace {

std::unique_ptr<Backend> load(const std::string& script) {
  const auto path = temporary("fake.txt");
  write_file(path, script);
  if (!has_family("fake"))
    throw Skipped{"the fake backend is not in this build"};
  return load_model({"fake", path, "cpu", 1}, CancelToken());
}

} // namespace

TEST("fake: plays its script again in every call") {
  const auto model = load("voxgate-fake 1\nlanguage fr 0.2\nlanguage en 0.7\nsegment 0 1000 One two.\n");
  const std::vector<float> samples(100);
  for (int round = 0; round < 2; ++round) {
    const auto segments = model->transcribe(samples, {}, CancelToken());
    CHECK(segments.size() == 1 && segments[0].tokens.size() == 2);
    CHECK(segments[0].tokens[1].bytes == " two." && segments[0].tokens[1].start_ms == 500);
  }
  const auto guesses = model->detect_language(samples, {0}, CancelToken()).front();
  CHECK(guesses.size() == 2 && guesses[0].language == "en");
}

TEST("fake: a script can fail on purpose, and a bad script is refused") {
  CHECK(failure_of([] { load("voxgate-fake 1\nload_fail no\n"); }) == StatusCode::load_failed);
  CHECK(failure_of([] { load("voxgate-fake 1\nnonsense\n"); }) == StatusCode::load_failed);
  CHECK(failure_of([] { load("something else\n"); }) == StatusCode::load_failed);
  const auto model = load("voxgate-fake 1\nfail broken\n");
  CHECK(failure_of([&] { model->transcribe({}, {}, CancelToken()); }) == StatusCode::inference_failed);
}

TEST("fake: a delay ends when it is cancelled") {
  const auto model = load("voxgate-fake 1\ndelay_ms 60000\n");
  CancelToken cancel;
  std::thread other([&cancel] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel.close();
  });
  const auto code = failure_of([&] { model->transcribe({}, {}, cancel); });
  other.join();
  CHECK(code == StatusCode::closed);
}

#include "harness.h"
#include "whisper_fixtures.h"

#include "backends/whisper/whisper_backend.h"

#include <thread>

using namespace voxgate;
using namespace voxgate::test;

namespace {

#ifdef __SANITIZE_THREAD__ // which makes computing many times slower; what the lanes share is the same
constexpr int kRounds = 1;
constexpr size_t kSeconds = 2;
constexpr int kAudioContext = 128;
#else
constexpr int kRounds = 3;
constexpr size_t kSeconds = 12;
constexpr int kAudioContext = 640;
#endif

} // namespace

TEST("whisper: the number of threads changes nothing in the answer") {
  const auto samples = noise(12 * kSampleRate);
  for (const bool words : {false, true}) {
    auto options = english();
    options.audio_context = 640; // above 512 ggml divides the attention of a token among the threads
    options.words = words;
    const auto alone = load_synthetic(3, 1)->transcribe(samples, options, CancelToken());
    CHECK(count_tokens(alone) > 5);
    for (const int threads : {2, 3, 5})
      CHECK(load_synthetic(3, threads)->transcribe(samples, options, CancelToken()) == alone);
  }
}

TEST("whisper: there are as many lanes as threads, at most eight") {
  CHECK(load_synthetic(5, 1)->info().lanes == 1);
  CHECK(!load_synthetic(5, 1)->lane_factory());
  CHECK(load_synthetic(5, 2)->info().lanes == 2);
  const auto first = load_synthetic(5, 10);
  CHECK(first->info().lanes == 8);
  CHECK(first->lane_factory()()->info().memory_bytes < first->info().memory_bytes);
}

TEST("whisper: the lanes beside the first one have a GiB of working memory together") {
  const uint64_t third = (uint64_t{1} << 30) / 3;
  CHECK(lane_count(third, 10) == 4);
  CHECK(lane_count(third + 1, 10) == 3);
  CHECK(lane_count(uint64_t{1} << 30, 10) == 2);
  CHECK(lane_count((uint64_t{1} << 30) + 1, 10) == 1);
  CHECK(lane_count(1, 10) == 8);
}

TEST("whisper: the threads that lanes could have add up to 256") {
  CHECK(lane_count(1, 32) == 8);
  CHECK(lane_count(1, 33) == 7);
  CHECK(lane_count(1, 128) == 2);
  CHECK(lane_count(1, 512) == 1);
}

TEST("whisper: on a GPU the lanes beside the first one take at most half of what the weights leave") {
  const uint64_t lane = uint64_t{384} << 20; // and 128 MiB beside its buffers
  const auto gigabytes = [](uint64_t count) { return count << 30; };
  CHECK(gpu_lane_count(lane, gigabytes(0), 16) == 1);
  CHECK(gpu_lane_count(lane, gigabytes(1) - 1, 16) == 1);
  CHECK(gpu_lane_count(lane, gigabytes(1), 16) == 2);
  CHECK(gpu_lane_count(lane, gigabytes(4), 16) == 5);
  CHECK(gpu_lane_count(lane, gigabytes(140), 16) == 8);
  CHECK(gpu_lane_count(lane, gigabytes(140), 3) == 3); // each keeps a thread of the CPU busy
}

TEST("whisper: lanes give side by side what one gives alone") {
  const auto first = load_synthetic(5, 5); // four lanes are at work, and share five threads
  const auto samples = noise(kSeconds * kSampleRate);
  auto untimed = english();
  untimed.audio_context = kAudioContext;
  untimed.max_tokens = 12;
  auto timed = untimed;
  timed.words = true;
  const auto hear = [&samples](Backend& lane, const ChunkOptions& options) {
    return lane.transcribe(samples, options, CancelToken());
  };
  const auto plain = hear(*first, untimed);
  const auto aligned = hear(*first, timed);
  CHECK(count_tokens(plain) > 5 && count_tokens(aligned) > 5);

  // Some lanes align while others do not: the setting for it must not be shared between lanes.
  struct Other {
    bool words;
    int right = 0;
  };
  std::vector<Other> others{{true}, {false}, {true}};
  {
    std::vector<std::jthread> threads;
    for (auto& other : others)
      threads.emplace_back([&, make = first->lane_factory()] {
        const auto lane = make();
        for (int i = 0; i < kRounds; ++i)
          other.right +=
              hear(*lane, other.words ? timed : untimed) == (other.words ? aligned : plain) ? 1 : 0;
      });
    for (int i = 0; i < kRounds; ++i)
      CHECK(hear(*first, untimed) == plain);
  }
  for (const auto& other : others)
    CHECK(other.right == kRounds);
}

TEST("whisper: a lane that is cancelled leaves the others alone, and the last one takes the weights along") {
  auto first = load_synthetic(6, 3);
  const auto make = first->lane_factory();
  auto second = make();
  auto third = make();
  const auto make_of_third = third->lane_factory(); // the factory keeps no lane alive
  const auto samples = noise(5 * kSampleRate);
  auto options = english();
  options.audio_context = 320;
  options.max_tokens = 8;
  const auto expected = first->transcribe(samples, options, CancelToken());
  CancelToken cancelled;
  StatusCode outcome{};
  std::jthread other([&] {
    cancelled.cancel();
    outcome = failure_of([&] { second->transcribe(samples, options, cancelled); });
  });
  CHECK(first->transcribe(samples, options, CancelToken()) == expected);
  other.join();
  CHECK(outcome == StatusCode::cancelled);
  first.reset();
  CHECK(second->transcribe(samples, options, CancelToken()) == expected);
  second.reset();
  CHECK(third->transcribe(samples, options, CancelToken()) == expected);
  third.reset();
  CHECK(failure_of([&] { make(); }) == StatusCode::closed);
  CHECK(failure_of([&] { make_of_third(); }) == StatusCode::closed);
}

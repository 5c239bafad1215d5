#include "accelerator.h"
#include "apart.h"
#include "harness.h"
#include "whisper_fixtures.h"

#include "backends/whisper/whisper_seams.h"
#include "backends/whisper/whisper_step_batcher.h"

#include <ggml-backend-impl.h>

#include <algorithm>
#include <chrono>
#include <thread>

// Batched decoding: lanes whose steps are computed in one graph.

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int kLanes = 4;

// What is asked of a lane: windows that are whole, short and sparse, in two languages, with a prompt, times
// and aligned words, and a text in doubt, which is decoded with several beams.
struct Chunk {
  std::vector<float> samples;
  ChunkOptions options;
};

Chunk chunk(int number) {
  Chunk result{noise(static_cast<size_t>(20000 + 4000 * (number % 5))), english()};
  for (auto& sample : result.samples)
    sample *= 1 + 0.3F * static_cast<float>(number);
  auto& options = result.options;
  options.audio_context = 300 + 60 * (number % 3);
  options.max_tokens = 12 + 3 * (number % 4);
  options.times = number % 4 == 1;
  options.language = number % 2 == 0 ? "en" : "de";
  options.prompt = number % 3 == 2 ? "before" : "";
  options.words = number == 4;
  options.beams = number == 5 ? 3 : 1;
  return result;
}
constexpr int kChunks = 8;

std::vector<int32_t> tokens_of(const std::vector<Segment>& segments) {
  std::vector<int32_t> ids;
  for (const auto& segment : segments) {
    for (const auto& token : segment.tokens)
      ids.push_back(token.id);
  }
  return ids;
}

using Texts = std::vector<std::vector<int32_t>>;

Texts heard_alone(Backend& model) {
  Texts texts;
  for (int i = 0; i < kChunks; ++i) {
    const auto asked = chunk(i);
    texts.push_back(tokens_of(model.transcribe(asked.samples, asked.options, CancelToken())));
    CHECK(texts.back().size() > 5);
  }
  return texts;
}

struct Together {
  Texts texts = Texts(kChunks);
  int batched_steps = 0;
  int most_lanes = 0;
};

// Each lane hears two of the chunks.
Together heard_together(const Backend& model) {
  Together result;
  std::vector<SeamCounts> counts(kLanes);
  {
    std::vector<std::jthread> threads;
    for (size_t index = 0; index < kLanes; ++index)
      threads.emplace_back([&, make = model.lane_factory(), index] {
        const auto lane = make();
        seam_counts = {};
        for (size_t i = index; i < kChunks; i += kLanes) {
          const auto asked = chunk(static_cast<int>(i));
          result.texts[i] = tokens_of(lane->transcribe(asked.samples, asked.options, CancelToken()));
        }
        counts[index] = seam_counts;
      });
  }
  for (const auto& count : counts) {
    result.batched_steps += count.batched_steps;
    result.most_lanes = std::max(result.most_lanes, count.most_lanes);
  }
  return result;
}

enum class Fault { none, status, exception };
Fault g_fault = Fault::none;

} // namespace

TEST("whisper batches: steps of several lanes are one graph, and the texts are those of each lane alone") {
  const auto model = load_synthetic(5, kLanes, true);
  const auto together = heard_together(*model);
  CHECK(together.texts == heard_alone(*load_synthetic(5)));
  CHECK(together.batched_steps > 40);
  CHECK(together.most_lanes > 1);
}

TEST("whisper batches: where a GPU is in front of the CPU, too, and where the graph fails each goes on "
     "alone") {
  for (const auto fault : {Fault::none, Fault::status, Fault::exception})
    apart([fault] {
      const auto alone = heard_alone(*load_synthetic(5));
      g_fault = fault;
      register_accelerator([](ggml_backend_t backend, int number) {
        if (number != 2 || g_fault == Fault::none) // the second one is that of the lanes together
          return;
        backend->iface.graph_compute = [](ggml_backend_t, ggml_cgraph*) -> ggml_status {
          if (g_fault == Fault::exception)
            throw std::bad_alloc();
          return GGML_STATUS_FAILED;
        };
      });
      const auto together = heard_together(*load_synthetic(5, kLanes, true));
      CHECK(together.texts == alone);
      CHECK((together.batched_steps > 0) == (fault == Fault::none));
    });
}

TEST("whisper batches: a lane that is cancelled among others leaves them alone") {
  const auto model = load_synthetic(5, kLanes, true);
  const auto expected = heard_alone(*load_synthetic(5));
  auto lane = model->lane_factory()();
  for (const int delay_ms : {3, 20}) {
    CancelToken cancelled;
    StatusCode outcome{};
    std::jthread left([&] {
      auto asked = chunk(0);
      asked.options.max_tokens = 0;
      outcome = failure_of([&] { lane->transcribe(asked.samples, asked.options, cancelled); });
    });
    const std::jthread leaves([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      cancelled.cancel();
    });
    CHECK(heard_together(*model).texts == expected);
    left.join();
    CHECK(outcome == StatusCode::cancelled);
  }
  const auto asked = chunk(0);
  CHECK(tokens_of(lane->transcribe(asked.samples, asked.options, CancelToken())) == expected[0]);
}

TEST("whisper batches: a step waits for those who decode, and not for ever") {
  std::vector<size_t> sizes;
  bool fails = false;
  StepBatcher batcher([&](std::span<const StepBatcher::Lane> lanes) {
    sizes.push_back(lanes.size());
    return !fails;
  });
  const StepBatcher::Member one(&batcher);
  CHECK(batcher.compute({}) == 1);
  {
    const StepBatcher::Member two(&batcher); // which wants none
    CHECK(batcher.compute({}) == 1);
  }
  fails = true;
  CHECK(batcher.compute({}) == 0);
  CHECK(sizes.size() == 3);
}

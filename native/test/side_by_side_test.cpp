#include "harness.h"

#include "backend.h"
#include "binding/log.h"

#include <atomic>
#include <thread>

using namespace voxgate;
using namespace voxgate::test;

// What several models, environments and workers do at the same time, for ThreadSanitizer.

namespace {

struct Listener final : LogListener {
  void post_log(LogLevel, const std::string& line) override {
    lines += line == "a whole line" ? 1 : 0;
    others += line == "a whole line" ? 0 : 1;
  }
  std::atomic<int> lines{0};
  std::atomic<int> others{0};
};

} // namespace

TEST("log: threads write lines in parts while listeners come and go, and no line is torn") {
  constexpr int kLines = 500;
  Listener stays;
  subscribe_to_log(stays, true);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([] {
        for (int i = 0; i < kLines; ++i) {
          write_log(LogLevel::info, "a whole ");
          write_log(LogLevel::info, "line\n");
        }
      });
    for (int thread = 0; thread < 2; ++thread)
      threads.emplace_back([] {
        for (int i = 0; i < kLines; ++i) {
          Listener leaves;
          subscribe_to_log(leaves, true);
          subscribe_to_log(leaves, false);
        }
      });
  }
  subscribe_to_log(stays, false);
  CHECK(stays.lines == 3 * kLines && stays.others == 0);
}

TEST("models: families are loaded, used, cancelled and freed side by side") {
  const std::vector<float> samples(kSampleRate, 0.1F);
  const auto use = [&samples](const char* family, const char* file) {
    for (int round = 0; round < 3; ++round) {
      CancelToken cancel;
      const auto model = load_model({family, std::string(VOXGATE_TEST_DATA "/") + file, "cpu", 1}, cancel);
      model->transcribe(samples, {}, cancel);
      cancel.cancel();
      CHECK(failure_of([&] { model->transcribe(samples, {}, cancel); }) == StatusCode::cancelled);
    }
  };
  std::atomic<int> ended{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 2; ++thread)
      for (const auto& model : {std::pair{"parakeet", "parakeet-script.bin"},
                                std::pair{"sensevoice", "sensevoice/random/model.gguf"}})
        threads.emplace_back([&use, &ended, model] {
          use(model.first, model.second);
          ++ended;
        });
  }
  CHECK(ended == 4);
}

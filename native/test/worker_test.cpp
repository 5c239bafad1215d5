#include "harness.h"

#include "binding/worker.h"

#include <chrono>

using namespace voxgate;
using namespace voxgate::test;

namespace {

// Waits in the worker until it is cancelled or `open` is set.
Worker::Task blocking(const std::shared_ptr<CancelToken>& cancel, std::atomic<bool>& open,
                      std::atomic<int>& ended) {
  return {cancel, [cancel, &open, &ended] {
            while (!open && !cancel->cancelled())
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ++ended;
          }};
}

} // namespace

TEST("worker: runs tasks in order") {
  std::string order;
  {
    Worker worker;
    for (const char letter : {'a', 'b', 'c'})
      worker.submit({std::make_shared<CancelToken>(), [&order, letter] { order += letter; }});
    worker.stop([&order] { order += '.'; });
    worker.join();
  }
  CHECK(order == "abc.");
}

TEST("worker: a cancelled task that waits ends before the one that runs") {
  std::atomic<bool> open{false};
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  Worker worker;
  const auto cancel = std::make_shared<CancelToken>();
  worker.submit(blocking(std::make_shared<CancelToken>(), open, first));
  worker.submit(blocking(cancel, open, second));
  cancel->cancel();
  worker.sweep();
  CHECK(second == 1 && first == 0);
  open = true;
  worker.stop([] {});
  worker.join();
  CHECK(first == 1 && second == 1);
}

TEST("worker: stop closes what runs, what waits and what comes later") {
  std::atomic<bool> open{false};
  std::atomic<int> ended{0};
  Worker worker;
  for (int i = 0; i < 3; ++i)
    worker.submit(blocking(std::make_shared<CancelToken>(), open, ended));
  worker.stop([&ended] { ended += 100; });
  worker.join();
  CHECK(ended == 103);
  const auto late = std::make_shared<CancelToken>();
  worker.submit(blocking(late, open, ended));
  CHECK(ended == 104 && late->cancelled());
}

#include "harness.h"

#include "binding/worker.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

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

TEST("worker: a number too small for a float's full precision is 0, which takes no longer than others") {
  volatile float tiny = 1e-39F;
  std::atomic<float> product{1};
  {
    Worker worker;
    worker.submit({std::make_shared<CancelToken>(), [&] { product = tiny * 0.5F; }});
    worker.stop([] {});
    worker.join();
  }
  CHECK(product == 0.0F);
  CHECK(tiny * 0.5F > 0.0F); // in other threads it is not
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

TEST("worker: several threads take tasks from one queue, and stop waits for all of them") {
  std::atomic<bool> open{false};
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> ended{0};
  Worker worker(3);
  for (int i = 0; i < 12; ++i) {
    worker.submit({std::make_shared<CancelToken>(), [&] {
                     most = std::max(most.load(), ++running);
                     while (!open)
                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                     --running;
                     ++ended;
                   }});
  }
  while (running < 3)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::atomic<int> ended_before_last{0};
  worker.stop([&] { ended_before_last = ended.load(); });
  open = true;
  worker.join();
  CHECK(most == 3 && ended == 12 && ended_before_last == 12);
}

TEST("status: a thread that the system refuses is out_of_memory, other errors of the system are not") {
  const auto code_of = [](std::errc error) {
    try {
      throw std::system_error(std::make_error_code(error));
    } catch (...) {
      return current_status(StatusCode::load_failed).code;
    }
  };
  CHECK(code_of(std::errc::resource_unavailable_try_again) == StatusCode::out_of_memory);
  CHECK(code_of(std::errc::not_enough_memory) == StatusCode::out_of_memory);
  CHECK(code_of(std::errc::no_such_file_or_directory) == StatusCode::load_failed);
}

TEST("worker: a task that throws takes no other with it") {
  std::atomic<bool> ran{false};
  {
    Worker worker;
    worker.submit({std::make_shared<CancelToken>(), [] { throw std::bad_alloc(); }});
    worker.submit({std::make_shared<CancelToken>(), [&ran] { ran = true; }});
    worker.stop([] {});
    worker.join();
  }
  CHECK(ran);
}

TEST("worker: a worker that never had a task ends without a thread") {
  int lasts = 0;
  Worker worker(2);
  worker.stop([&] { ++lasts; });
  CHECK(lasts == 1);
  worker.join();
}

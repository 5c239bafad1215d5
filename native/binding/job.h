#pragma once

#include "binding/environment.h"
#include "freed_memory.h"

namespace voxgate {

// The result of work: a function that makes the value of the promise from plain data, on the JavaScript
// thread. An empty function means that the work is not complete. The work is then called again, after the
// tasks that wait for the thread.
using Result = std::function<Napi::Value(Napi::Env)>;

struct Job {
  CallId id;
  std::shared_ptr<CancelToken> cancel;
  std::shared_ptr<Environment> environment;
};

// The objects that a call keeps alive.
struct KeptAlive {
  Napi::ObjectReference owner{};
  std::shared_ptr<void> holding{};
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
};

// Runs `work` on the worker and returns { promise, id } to JavaScript; the id is for Environment::cancel. The
// promise settles when the work has really ended. `fallback` is the code of unexpected exceptions.
Napi::Object start_job(Napi::Env env, Worker& worker, KeptAlive kept, StatusCode fallback,
                       std::function<Result(const Job&)> work);

// Holds an object of type T that is made, used and destroyed on a thread of its own. The Resident itself
// belongs to the JavaScript thread.
template <typename T> class Resident {
 public:
  explicit Resident(std::shared_ptr<Environment> environment) : environment_(std::move(environment)) {
    environment_->add_worker(worker_);
  }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;
  ~Resident() {
    close([] {});
    worker_.join();
    environment_->remove_worker(worker_);
  }

  Worker& worker() { return worker_; }
  bool closed() const { return closed_; }

  // Use this only on the worker's thread. It is empty before the object is made and after it is closed.
  std::unique_ptr<T>& object() { return object_; }

  // Pending calls fail with `closed`. The object is destroyed on its thread, and then `done` runs there. It
  // asks for no memory, because the destructor calls it.
  void close(std::function<void()> done) noexcept {
    if (!closed_)
      done_ = std::move(done);
    closed_ = true;
    environment_->close_calls(worker_);
    worker_.stop([this] {
      object_.reset();
      give_back_freed_memory();
      done_();
    });
  }

 private:
  std::shared_ptr<Environment> environment_;
  std::unique_ptr<T> object_;
  bool closed_ = false;
  std::function<void()> done_;
  Worker worker_; // must be last, so that its thread ends before the object is destroyed
};

// Closes the Resident and returns a promise that is fulfilled when its object is destroyed. If it was closed
// before, the promise is already fulfilled.
template <typename T> Napi::Promise close_resident(Napi::Env env, Resident<T>& resident, Napi::Object owner) {
  auto environment = Environment::of(env).shared_from_this();
  const auto id = std::make_shared<CallId>();
  // All that the end needs is made now, so that the promise settles also when no memory is left.
  const auto end =
      std::make_shared<std::unique_ptr<Environment::Delivery>>(std::make_unique<Environment::Delivery>(
          [environment, id](Napi::Env e) { environment->resolve(*id, e.Undefined()); }));
  std::function<void()> done = [environment, end] { environment->post(std::move(*end)); };
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (resident.closed()) {
    deferred.Resolve(env.Undefined());
    return deferred.Promise();
  }
  PendingCall call{deferred, std::make_shared<CancelToken>(), &resident.worker(), Napi::Persistent(owner),
                   nullptr};
  *id = environment->add(std::move(call));
  resident.close(std::move(done));
  return deferred.Promise();
}

} // namespace voxgate

#pragma once

#include "binding/environment.h"

namespace voxgate {

// What work gives back: called on the JavaScript thread to make the value of the promise from plain data. An
// empty one means that the work is not done: it is called again when those that wait for the thread had their
// turn.
using Result = std::function<Napi::Value(Napi::Env)>;

struct Job {
  CallId id;
  std::shared_ptr<CancelToken> cancel;
  std::shared_ptr<Environment> environment;
};

// What a call keeps alive and whom it tells.
struct Callbacks {
  Napi::ObjectReference owner;
  std::shared_ptr<void> holding;
  Napi::FunctionReference on_segment;
  Napi::FunctionReference on_progress;
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
};

// Runs `work` on the worker and returns { promise, id } to JavaScript; the id is for Environment::cancel. The
// promise settles when the work has really ended. `fallback` is the code of failures nobody foresaw.
Napi::Object start_job(Napi::Env env, Worker& worker, Callbacks callbacks, StatusCode fallback,
                       std::function<Result(const Job&)> work);

// An object of T that lives on a thread of its own: made there, used there, destroyed there. This side of it
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

  // On the worker's thread only. Empty until made, and again once closed.
  std::unique_ptr<T>& object() { return object_; }

  // Pending calls fail with `closed`, the object is destroyed on its thread, then `done` runs there.
  void close(std::function<void()> done) {
    closed_ = true;
    environment_->close_calls(worker_);
    worker_.stop([this, done = std::move(done)] {
      object_.reset();
      done();
    });
  }

 private:
  std::shared_ptr<Environment> environment_;
  std::unique_ptr<T> object_;
  bool closed_ = false;
  Worker worker_; // last: its thread is gone before the object is
};

// Closes it and returns a promise that is fulfilled once the object is destroyed; fulfilled already when it
// was closed before.
template <typename T> Napi::Promise close_resident(Napi::Env env, Resident<T>& resident, Napi::Object owner) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  if (resident.closed()) {
    deferred.Resolve(env.Undefined());
    return deferred.Promise();
  }
  auto environment = Environment::of(env).shared_from_this();
  PendingCall call{
      deferred, std::make_shared<CancelToken>(), &resident.worker(), Napi::Persistent(owner), nullptr, {},
      {}};
  const CallId id = environment->add(std::move(call));
  resident.close([environment, id] {
    environment->post([environment, id](Napi::Env e) { environment->resolve(id, e.Undefined()); });
  });
  return deferred.Promise();
}

} // namespace voxgate

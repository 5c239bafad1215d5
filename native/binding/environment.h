#pragma once

#include "binding/log.h"
#include "binding/worker.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <napi.h>
#include <set>
#include <string>

namespace voxgate {

using CallId = uint64_t;

// A promise that JavaScript has, and the objects that must stay alive until it settles. Only the JavaScript
// thread uses it; the worker knows only the id of the call and carries plain data.
struct PendingCall {
  Napi::Promise::Deferred deferred;
  std::shared_ptr<CancelToken> cancel;
  Worker* worker;                // the environment's own, or kept alive by one of the next two
  Napi::ObjectReference owner;   // the wrapped object of the call, so that it is not collected meanwhile
  std::shared_ptr<void> holding; // the object that will be wrapped
};

// The state of one Node environment (the main thread or a worker_thread). Other threads reach JavaScript only
// through `post`, which uses one thread-safe function, so that deliveries of one thread arrive in order.
//
// It outlives every worker: wrapped objects hold it, and the cleanup hook stops and joins all workers before
// Node destroys the thread-safe function.
class Environment : public std::enable_shared_from_this<Environment>, public LogListener {
 public:
  using Delivery = std::function<void(Napi::Env)>;

  static std::shared_ptr<Environment> create(Napi::Env env);
  static Environment& of(Napi::Env env);
  ~Environment() override;

  // May be called on any thread. False if the environment is shutting down, or if there is no memory for a
  // new delivery; the delivery is then freed and does not run.
  bool post(Delivery delivery) noexcept;
  bool post(std::unique_ptr<Delivery> delivery) noexcept;

  CallId add(PendingCall call);
  PendingCall* find(CallId id);
  void resolve(CallId id, Napi::Value value);
  void reject(CallId id, const Status& status);
  void cancel(CallId id);
  void close_calls(const Worker& worker); // every pending call of this worker fails with `closed`

  // The worker of all audio files. They are read in short turns, so that a few threads serve any number.
  Worker& decoders() { return decoders_; }

  void add_worker(Worker& worker) { workers_.insert(&worker); }
  void remove_worker(Worker& worker) { workers_.erase(&worker); }

  void set_logger(Napi::Function write); // an empty function removes the logger
  void post_log(LogLevel level, const std::string& line) override;

  Napi::FunctionReference model_class;
  Napi::FunctionReference voice_activity_class;
  Napi::FunctionReference speaker_model_class;
  Napi::FunctionReference turn_detector_class;
  Napi::FunctionReference audio_file_class;

 private:
  explicit Environment(Napi::Env env);
  void shut_down();
  PendingCall take(CallId id);

  static constexpr size_t kMaxDecoderThreads = 4;

  static void deliver(Napi::Env env, Napi::Function, std::nullptr_t*, Delivery* delivery);
  using Channel = Napi::TypedThreadSafeFunction<std::nullptr_t, Delivery, deliver>;

  Napi::Env env_;
  Channel channel_;
  std::map<CallId, PendingCall> pending_;
  CallId last_id_ = 0;
  Napi::ObjectReference out_of_memory_; // an error that is ready when no other can be made
  std::set<Worker*> workers_;           // the workers of the models
  Worker decoders_{kMaxDecoderThreads};
  Napi::FunctionReference logger_;
  std::atomic<int> queued_logs_{0};
};

} // namespace voxgate

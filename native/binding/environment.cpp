#include "binding/environment.h"

#include "binding/errors.h"
#include "binding/log.h"

#include <array>
#include <utility>

namespace voxgate {
namespace {

// While the JavaScript thread is blocked, a library that logs a lot must not fill the memory.
constexpr int kMaxQueuedLogs = 1000;

// In the order of LogLevel.
constexpr std::array kLevelNames{"debug", "info", "warn", "error"};

} // namespace

Environment::Environment(Napi::Env env) : env_(env) {
  channel_ = Channel::New(env, "voxgate", 0, 1);
  out_of_memory_ = Napi::Persistent(make_error(env, {StatusCode::out_of_memory, "Out of memory"}).Value());
  channel_.Unref(env); // only pending calls keep the process alive
}

Environment::~Environment() = default;

std::shared_ptr<Environment> Environment::create(Napi::Env env) {
  std::shared_ptr<Environment> self(new Environment(env));
  // Hooks run in reverse order. This one is added after the hook of the thread-safe function, so it runs
  // before it.
  env.AddCleanupHook([self] {
    try {
      self->shut_down();
    } catch (...) { // Node cannot handle exceptions here, and the process is about to end
    }
  });
  auto holder = std::make_unique<std::shared_ptr<Environment>>(self);
  env.SetInstanceData<std::shared_ptr<Environment>>(holder.release()); // deleted by Node
  return self;
}

Environment& Environment::of(Napi::Env env) {
  return **env.GetInstanceData<std::shared_ptr<Environment>>();
}

void Environment::deliver(Napi::Env env, Napi::Function, std::nullptr_t*, Delivery* delivery) {
  const std::unique_ptr<Delivery> owned(delivery);
  if (static_cast<napi_env>(env) != nullptr)
    guarded(env, [&] { (*owned)(env); });
}

bool Environment::post(Delivery delivery) noexcept {
  try {
    return post(std::make_unique<Delivery>(std::move(delivery)));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Environment::post(std::unique_ptr<Delivery> delivery) noexcept {
  if (channel_.NonBlockingCall(delivery.get()) != napi_ok)
    return false;
  static_cast<void>(delivery.release()); // deliver() frees it
  return true;
}

CallId Environment::add(PendingCall call) {
  pending_.emplace(++last_id_, std::move(call));
  if (pending_.size() == 1)
    channel_.Ref(env_);
  return last_id_;
}

PendingCall* Environment::find(CallId id) {
  const auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

PendingCall Environment::take(CallId id) {
  auto node = pending_.extract(id);
  if (pending_.empty())
    channel_.Unref(env_);
  return std::move(node.mapped());
}

void Environment::resolve(CallId id, Napi::Value value) {
  take(id).deferred.Resolve(value);
}

void Environment::reject(CallId id, const Status& status) {
  Napi::Value error = out_of_memory_.Value();
  try {
    error = make_error(env_, status).Value();
  } catch (const std::bad_alloc&) {
  }
  take(id).deferred.Reject(error);
}

void Environment::cancel(CallId id) {
  if (PendingCall* call = find(id)) {
    call->cancel->cancel();
    call->worker->sweep();
  }
}

void Environment::close_calls(const Worker& worker) {
  for (auto& [id, call] : pending_) {
    if (call.worker == &worker)
      call.cancel->close();
  }
}

void Environment::set_logger(Napi::Function write) {
  logger_.Reset();
  if (!write.IsEmpty())
    logger_ = Napi::Persistent(write);
  subscribe_to_log(*this, !write.IsEmpty());
}

void Environment::post_log(LogLevel level, const std::string& line) {
  // One queued line, from when it is made until it is written or freed.
  struct Place {
    explicit Place(std::shared_ptr<Environment> in) : environment(std::move(in)) {
      ++environment->queued_logs_;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { --environment->queued_logs_; }
    std::shared_ptr<Environment> environment;
  };
  if (queued_logs_ >= kMaxQueuedLogs)
    return;
  post([place = std::make_shared<Place>(shared_from_this()), level, line](Napi::Env env) {
    const auto& logger = place->environment->logger_;
    if (!logger.IsEmpty())
      logger.Call(
          {Napi::String::New(env, kLevelNames.at(static_cast<size_t>(level))), Napi::String::New(env, line)});
  });
}

void Environment::shut_down() {
  subscribe_to_log(*this, false);
  workers_.insert(&decoders_);
  for (Worker* worker : workers_)
    worker->stop([] {});
  for (Worker* worker : workers_)
    worker->join();
  // References must be released while the environment still exists. The objects held here join their workers,
  // which have stopped.
  std::exchange(pending_, {}).clear();
  logger_.Reset();
  out_of_memory_.Reset();
  model_class.Reset();
  voice_activity_class.Reset();
  speaker_model_class.Reset();
  turn_detector_class.Reset();
  audio_file_class.Reset();
}

} // namespace voxgate

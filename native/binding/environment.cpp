#include "binding/environment.h"

#include "binding/errors.h"
#include "binding/log.h"

#include <utility>

namespace voxgate {
namespace {

// While the JavaScript thread is blocked, a library that logs a lot must not fill the memory.
constexpr int kMaxQueuedLogs = 1000;

} // namespace

Environment::Environment(Napi::Env env) : env_(env) {
  channel_ = Channel::New(env, "voxgate", 0, 1);
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
    auto owned = std::make_unique<Delivery>(std::move(delivery));
    if (channel_.NonBlockingCall(owned.get()) != napi_ok)
      return false;
    static_cast<void>(owned.release()); // deliver() frees it
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

CallId Environment::add(PendingCall call) {
  if (pending_.empty())
    channel_.Ref(env_);
  pending_.emplace(++last_id_, std::move(call));
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
  take(id).deferred.Reject(make_error(env_, status).Value());
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

void Environment::post_log(LogLevel level, const std::string& line) noexcept {
  if (queued_logs_.fetch_add(1) >= kMaxQueuedLogs) {
    --queued_logs_;
    return;
  }
  const bool posted = post([self = shared_from_this(), level, line](Napi::Env env) {
    --self->queued_logs_;
    if (!self->logger_.IsEmpty())
      self->logger_.Call({Napi::String::New(env, log_level_name(level)), Napi::String::New(env, line)});
  });
  if (!posted)
    --queued_logs_;
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
  model_class.Reset();
  voice_activity_class.Reset();
  audio_file_class.Reset();
}

} // namespace voxgate

#include "binding/job.h"

#include "binding/errors.h"

namespace voxgate {
namespace {

Napi::Object handle(Napi::Env env, Napi::Promise promise, CallId id) {
  auto result = Napi::Object::New(env);
  result.Set("promise", promise);
  result.Set("id", Napi::Number::New(env, static_cast<double>(id)));
  return result;
}

void settle(Environment& environment, CallId id, const Result& result, Napi::Env env) {
  try {
    // Work that ended before it heard of a cancel or close is refused too: the outcome must not depend on the
    // race.
    environment.find(id)->cancel->check();
    environment.resolve(id, result(env));
  } catch (...) {
    // Or making the value failed (out of memory, most likely); the call is still pending then.
    if (environment.find(id) != nullptr)
      environment.reject(id, current_status(StatusCode::inference_failed));
  }
}

} // namespace

Napi::Object start_job(Napi::Env env, Worker& worker, Callbacks callbacks, StatusCode fallback,
                       std::function<Result(const Job&)> work) {
  Environment& environment = Environment::of(env);
  auto cancel = std::make_shared<CancelToken>();
  const auto deferred = Napi::Promise::Deferred::New(env);
  PendingCall call{deferred,
                   cancel,
                   &worker,
                   std::move(callbacks.owner),
                   std::move(callbacks.holding),
                   std::move(callbacks.on_segment),
                   std::move(callbacks.on_progress)};
  const CallId id = environment.add(std::move(call));

  // A failed post means that the environment is going down: nobody is left to tell.
  auto run = [job = Job{id, cancel, environment.shared_from_this()}, fallback, work = std::move(work)] {
    Environment::Delivery end;
    try {
      job.cancel->check();
      end = [job, result = work(job)](Napi::Env e) { settle(*job.environment, job.id, result, e); };
    } catch (...) {
      end = [job, status = current_status(fallback)](Napi::Env) { job.environment->reject(job.id, status); };
    }
    job.environment->post(std::move(end));
  };
  worker.submit({cancel, std::move(run)});
  return handle(env, deferred.Promise(), id);
}

} // namespace voxgate

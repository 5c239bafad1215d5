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
    // A cancel or close that came before this point also counts for work that ended without seeing it, so
    // that the outcome does not depend on the race.
    environment.find(id)->cancel->check();
    environment.resolve(id, result(env));
  } catch (...) {
    // Either it was cancelled, or making the value failed, most likely for lack of memory. The call is then
    // still pending.
    if (environment.find(id) != nullptr)
      environment.reject(id, current_status(StatusCode::inference_failed));
  }
}

struct Running {
  Job job;
  Worker& worker;
  StatusCode fallback;
  std::function<Result(const Job&)> work;
  std::string place;
  std::string request;
};

// A failed post means that the environment is shutting down, and then there is no promise to settle.
void run(const std::shared_ptr<Running>& running) {
  const Job& job = running->job;
  Environment::Delivery end;
  try {
    job.cancel->check();
    Result result;
    {
      const RunningCall call(running->place.c_str(), running->request.c_str());
      result = running->work(job);
    }
    if (!result)
      return running->worker.submit({job.cancel, [running] { run(running); }});
    end = [job, result = std::move(result)](Napi::Env e) { settle(*job.environment, job.id, result, e); };
  } catch (...) {
    end = [job, status = current_status(running->fallback)](Napi::Env) {
      job.environment->reject(job.id, status);
    };
  }
  job.environment->post(std::move(end));
}

} // namespace

Napi::Object start_job(Napi::Env env, Worker& worker, Callbacks callbacks, StatusCode fallback,
                       std::function<Result(const Job&)> work) {
  Environment& environment = Environment::of(env);
  const auto cancel = std::move(callbacks.cancel);
  std::string place = std::move(callbacks.place);
  std::string request = std::move(callbacks.request);
  const auto deferred = Napi::Promise::Deferred::New(env);
  PendingCall call{deferred,
                   cancel,
                   &worker,
                   std::move(callbacks.owner),
                   std::move(callbacks.holding),
                   std::move(callbacks.on_segment),
                   std::move(callbacks.on_progress)};
  const CallId id = environment.add(std::move(call));
  const auto running = std::make_shared<Running>(Running{{id, cancel, environment.shared_from_this()},
                                                         worker,
                                                         fallback,
                                                         std::move(work),
                                                         std::move(place),
                                                         std::move(request)});
  try {
    worker.submit({cancel, [running] { run(running); }});
  } catch (...) {
    environment.reject(id, current_status(fallback));
  }
  return handle(env, deferred.Promise(), id);
}

} // namespace voxgate

#include "binding/job.h"

#include "binding/errors.h"
#include "freed_memory.h"

namespace voxgate {
namespace {

Napi::Object handle(Napi::Env env, Napi::Promise promise, CallId id) {
  auto result = Napi::Object::New(env);
  result.Set("promise", promise);
  result.Set("id", Napi::Number::New(env, static_cast<double>(id)));
  return result;
}

struct Running {
  Job job;
  Worker& worker;
  StatusCode fallback;
  std::function<Result(const Job&)> work;
  Result result; // empty if the work failed
  Status failure{};
  // It is made before the work begins, so that the promise settles also when no memory is left.
  std::unique_ptr<Environment::Delivery> end{};
};

void settle(const Running& running, Napi::Env env) {
  Environment& environment = *running.job.environment;
  const CallId id = running.job.id;
  if (!running.result)
    return environment.reject(id, running.failure);
  try {
    // A cancel or close that came before this point also counts for work that ended without seeing it, so
    // that the outcome does not depend on the race.
    running.job.cancel->check();
    environment.resolve(id, running.result(env));
  } catch (...) {
    // Either it was cancelled, or making the value failed, most likely for lack of memory. The call is then
    // still pending.
    if (environment.find(id) != nullptr)
      environment.reject(id, current_status(StatusCode::inference_failed));
  }
}

// A failed post means that the environment is shutting down, and then there is no promise to settle.
void run(const std::shared_ptr<Running>& running) {
  const Job& job = running->job;
  try {
    job.cancel->check();
    running->result = running->work(job);
    if (!running->result)
      return running->worker.submit({job.cancel, [running] { run(running); }});
  } catch (...) {
    running->result = {};
    running->failure = current_status(running->fallback);
  }
  job.environment->post(std::move(running->end));
  give_back_freed_memory_at_times();
}

} // namespace

Napi::Object start_job(Napi::Env env, Worker& worker, KeptAlive kept, StatusCode fallback,
                       std::function<Result(const Job&)> work) {
  Environment& environment = Environment::of(env);
  const auto cancel = std::move(kept.cancel);
  const auto running = std::make_shared<Running>(
      Running{{0, cancel, environment.shared_from_this()}, worker, fallback, std::move(work), {}});
  auto end = std::make_unique<Environment::Delivery>([running](Napi::Env e) { settle(*running, e); });
  Worker::Task task{cancel, [running] { run(running); }};
  const auto deferred = Napi::Promise::Deferred::New(env);
  PendingCall call{deferred, cancel, &worker, std::move(kept.owner), std::move(kept.holding)};
  const CallId id = running->job.id = environment.add(std::move(call));
  running->end = std::move(end); // it holds `running` in turn, until it is posted
  try {
    worker.submit(std::move(task));
  } catch (...) {
    running->end.reset();
    environment.reject(id, current_status(fallback));
  }
  return handle(env, deferred.Promise(), id);
}

} // namespace voxgate

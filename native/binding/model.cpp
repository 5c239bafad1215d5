#include "binding/model.h"

#include "binding/convert.h"
#include "binding/helper_threads.h"

#include <algorithm>

namespace voxgate {
namespace {

// The argument that a load job passes to the constructor; JavaScript cannot make one.
struct Loaded {
  std::shared_ptr<Resident<Backend>> resident;
  MakeBackend make;
  ModelInfo info;
  LaneFactory lane_factory;
  int threads;
};

// Makes a backend on a thread of its own. The promise resolves to the Model that wraps it.
Napi::Object start_making(Napi::Env env, int threads, MakeBackend make) {
  auto resident = std::make_shared<Resident<Backend>>(Environment::of(env).shared_from_this());
  Worker& worker = resident->worker();
  return start_job(
      env, worker, {.holding = resident}, StatusCode::load_failed,
      [resident = resident.get(), make = std::move(make), threads](const Job& job) -> Result {
        start_helper_threads(threads);
        auto& backend = resident->object() = make(*job.cancel);
        return [info = backend->info(), lanes = backend->lane_factory(), threads, make,
                job](Napi::Env e) -> Napi::Value {
          auto held = job.environment->find(job.id)->holding;
          Loaded loaded{std::static_pointer_cast<Resident<Backend>>(held), make, info, lanes, threads};
          return job.environment->model_class.New({Napi::External<Loaded>::New(e, &loaded)});
        };
      });
}

// Calls the backend of a model. A std::bad_alloc from the middle of its work may leave a library half way, so
// the backend is then destroyed, and the next call makes it anew.
template <typename Call>
auto call_backend(std::unique_ptr<Backend>& backend, const MakeBackend& make, const CancelToken& cancel,
                  Call call) {
  try {
    if (!backend)
      backend = make(cancel);
    return call(*backend);
  } catch (const std::bad_alloc&) {
    backend.reset();
    throw;
  }
}

void check_family(Napi::Object options, const std::string& family) {
  if (has_family(family))
    return;
  std::string known;
  for (const auto name : family_names())
    known.append(known.empty() ? "" : " or ").append(name);
  throw argument_error(options.Env(), known, "family", options.Get("family"));
}

} // namespace

void Model::define(Napi::Env env, Napi::Object exports) {
  const auto constructor = DefineClass(
      env, "Model",
      {getter<&Model::info>("info"), method<&Model::lane>("lane"), method<&Model::transcribe>("transcribe"),
       method<&Model::detect_language>("detectLanguage"), method<&Model::close>("close")});
  Environment::of(env).model_class = Napi::Persistent(constructor);
  exports.Set("loadModel", Napi::Function::New(env, entry<load>, "loadModel"));
}

Napi::Value Model::load(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  const auto js_options = read_object(info, 0, "options");
  const auto options = read_load_options(js_options);
  check_family(js_options, options.family);
  return start_making(env, options.threads,
                      [options](const CancelToken& cancel) { return load_model(options, cancel); });
}

Napi::Value Model::lane(const Napi::CallbackInfo& info) {
  if (!lane_factory_)
    throw make_error(info.Env(), {StatusCode::invalid_argument, "This model has one lane"});
  return start_making(
      info.Env(), threads_,
      [make = lane_factory_, whole = make_, closed = resident_->closed()](const CancelToken& cancel) {
        try {
          return make();
        } catch (const Failure& failure) {
          if (closed || failure.status().code != StatusCode::closed)
            throw;
          return whole(cancel); // the weights went when memory ran out
        }
      });
}

Model::Model(const Napi::CallbackInfo& info) : Wrapped<Model>(info) {
  if (!info[0].IsExternal())
    throw argument_error(info.Env(), "loadModel to be called", "new Model", info[0]);
  auto* loaded = info[0].As<Napi::External<Loaded>>().Data();
  resident_ = loaded->resident;
  make_ = std::move(loaded->make);
  info_ = loaded->info;
  lane_factory_ = std::move(loaded->lane_factory);
  threads_ = loaded->threads;
  // This tells the garbage collector how much memory an unreferenced model holds.
  external_bytes_ = static_cast<int64_t>(info_.memory_bytes);
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), external_bytes_);
}

Model::~Model() {
  forget_memory();
}

void Model::forget_memory() {
  if (external_bytes_ != 0)
    Napi::MemoryManagement::AdjustExternalMemory(Env(), -external_bytes_);
  external_bytes_ = 0;
}

Napi::Value Model::info(const Napi::CallbackInfo& info) {
  return to_js(info.Env(), info_);
}

Napi::Value Model::transcribe(const Napi::CallbackInfo& info) {
  auto samples = read_samples(info, 0, kMaxChunkSamples);
  auto options = read_chunk_options(read_object(info, 1, "options"), info_);
  return start_job(
      info.Env(), resident_->worker(), {.owner = Napi::Persistent(Value())}, StatusCode::inference_failed,
      [resident = resident_.get(), make = make_, samples = std::move(samples),
       options = std::move(options)](const Job& job) -> Result {
        auto segments = call_backend(resident->object(), make, *job.cancel, [&](Backend& backend) {
          return backend.transcribe(samples, options, *job.cancel);
        });
        return [segments = std::move(segments)](Napi::Env e) { return to_js_array(e, segments); };
      });
}

Napi::Value Model::detect_language(const Napi::CallbackInfo& info) {
  auto samples = read_samples(info, 0, kMaxChunkSamples);
  const auto given = read_object(info, 1, "options");
  DetectionOptions options{read_integer(given, "audioContext", 0, info_.audio_context),
                           read_parts(given, "parts")};
  return start_job(info.Env(), resident_->worker(), {.owner = Napi::Persistent(Value())},
                   StatusCode::inference_failed,
                   [resident = resident_.get(), make = make_, samples = std::move(samples),
                    options = std::move(options)](const Job& job) -> Result {
                     auto heard = call_backend(resident->object(), make, *job.cancel, [&](Backend& backend) {
                       return backend.detect_language(samples, options, *job.cancel);
                     });
                     return [heard = std::move(heard)](Napi::Env e) {
                       auto guess = to_js(e, heard.front());
                       guess.Set("parts", to_js_array(e, std::vector(heard.begin() + 1, heard.end())));
                       return guess;
                     };
                   });
}

Napi::Value Model::close(const Napi::CallbackInfo& info) {
  forget_memory();
  return close_resident(info.Env(), *resident_, Value());
}

} // namespace voxgate

#include "binding/speaker_model.h"

#include "backend.h"
#include "binding/convert.h"
#include "binding/errors.h"
#include "binding/helper_threads.h"

namespace voxgate {
namespace {

using ResidentSpeakers = Resident<Speakers>;

constexpr size_t kMaxSceneSamples = size_t{120} * kSampleRate; // of one call of segmentation
constexpr size_t kMinStep = 1600;                              // a tenth of a second between two windows
constexpr size_t kMaxStep = 160000;                            // a window
constexpr size_t kMaxVoiceSamples = size_t{30} * kSampleRate;  // of one call of embeddings
constexpr size_t kMinVoiceSamples = 1600;                      // silence is added to fewer
constexpr size_t kMaxMasks = 512;
constexpr size_t kMaxMaskValues = 1048576; // of all masks together

} // namespace

void SpeakerModel::define(Napi::Env env, Napi::Object exports) {
  const auto constructor =
      DefineClass(env, "SpeakerModel",
                  {method<&SpeakerModel::segmentation>("segmentation"),
                   method<&SpeakerModel::embeddings>("embeddings"), method<&SpeakerModel::close>("close")});
  Environment::of(env).speaker_model_class = Napi::Persistent(constructor);
  exports.Set("loadSpeakers", Napi::Function::New(env, entry<load>, "loadSpeakers"));
}

Napi::Value SpeakerModel::load(const Napi::CallbackInfo& info) {
  const auto options = read_object(info, 0, "options");
  const auto path = read_string(options, "path");
  const int threads = options.Get("threads").IsUndefined() ? 1 : read_threads(options);
  auto resident = std::make_shared<ResidentSpeakers>(Environment::of(info.Env()).shared_from_this());
  Callbacks callbacks;
  callbacks.holding = resident;
  Worker& worker = resident->worker();
  return start_job(
      info.Env(), worker, std::move(callbacks), StatusCode::load_failed,
      [resident = resident.get(), path, threads](const Job& job) -> Result {
        start_helper_threads(threads);
        resident->object() = std::make_unique<Speakers>(path, threads);
        return [job](Napi::Env e) -> Napi::Value {
          auto held = std::static_pointer_cast<ResidentSpeakers>(job.environment->find(job.id)->holding);
          return job.environment->speaker_model_class.New({Napi::External<decltype(held)>::New(e, &held)});
        };
      });
}

SpeakerModel::SpeakerModel(const Napi::CallbackInfo& info) : Wrapped<SpeakerModel>(info) {
  if (!info[0].IsExternal())
    throw argument_error(info.Env(), "loadSpeakers to be called", "new SpeakerModel", info[0]);
  resident_ = *info[0].As<Napi::External<std::shared_ptr<ResidentSpeakers>>>().Data();
}

Napi::Value SpeakerModel::segmentation(const Napi::CallbackInfo& info) {
  auto samples = read_samples(info, 0, kMaxSceneSamples);
  const auto step = static_cast<size_t>(read_integer(read_object(info, 1, "options"), "step",
                                                     static_cast<int>(kMinStep), static_cast<int>(kMaxStep)));
  Callbacks callbacks;
  callbacks.owner = Napi::Persistent(Value());
  return start_job(
      info.Env(), resident_->worker(), std::move(callbacks), StatusCode::inference_failed,
      [resident = resident_.get(), samples = std::move(samples), step](const Job& job) -> Result {
        auto result = resident->object()->segmentation(samples, step, *job.cancel);
        return [result = std::move(result)](Napi::Env e) { return to_js(e, result); };
      });
}

Napi::Value SpeakerModel::embeddings(const Napi::CallbackInfo& info) {
  auto samples = read_samples(info, 0, kMaxVoiceSamples);
  samples.resize(std::max(samples.size(), kMinVoiceSamples));
  const auto count = static_cast<size_t>(
      read_integer(read_object(info, 1, "options"), "masks", 0, static_cast<int>(kMaxMasks)));
  auto values = count == 0 ? std::vector<float>{} : read_samples(info, 2, kMaxMaskValues);
  if (count > 0 && values.size() % count != 0)
    throw argument_error(info.Env(), "masks of equal length", "masks", info[2]);
  Callbacks callbacks;
  callbacks.owner = Napi::Persistent(Value());
  return start_job(info.Env(), resident_->worker(), std::move(callbacks), StatusCode::inference_failed,
                   [resident = resident_.get(), samples = std::move(samples), values = std::move(values),
                    count](const Job& job) -> Result {
                     std::vector<std::span<const float>> masks;
                     for (size_t i = 0; i < count; ++i)
                       masks.push_back(
                           std::span(values).subspan(i * (values.size() / count), values.size() / count));
                     auto result = resident->object()->embeddings(samples, masks, *job.cancel);
                     return [result = std::move(result)](Napi::Env e) { return to_js(e, result); };
                   });
}

Napi::Value SpeakerModel::close(const Napi::CallbackInfo& info) {
  return close_resident(info.Env(), *resident_, Value());
}

} // namespace voxgate

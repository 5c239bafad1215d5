#pragma once

#include "binding/convert.h"
#include "binding/errors.h"
#include "binding/helper_threads.h"
#include "binding/job.h"

#include <string>

namespace voxgate {

// The JavaScript object of a network of our own, which is loaded, used and closed on a thread of its own. `T`
// is the class of the object, and says what differs:
//
//   kClass, kLoader           the names of the class and of the function that loads it
//   kConstructor              where the environment keeps the class
//   methods()                 the methods beside `close`
//   make(options)             reads the options, and returns the function that makes the network on its
//   thread
template <typename T, typename Network> class NetworkObject : public Wrapped<T> {
 public:
  static void define(Napi::Env env, Napi::Object exports) {
    auto methods = T::methods();
    methods.push_back(Wrapped<T>::template method<&NetworkObject::close>("close"));
    Environment::of(env).*T::kConstructor = Napi::Persistent(T::DefineClass(env, T::kClass, methods));
    exports.Set(T::kLoader, Napi::Function::New(env, entry<load>, T::kLoader));
  }

  explicit NetworkObject(const Napi::CallbackInfo& info) : Wrapped<T>(info) {
    if (!info[0].IsExternal())
      throw argument_error(info.Env(), std::string(T::kLoader) + " to be called",
                           std::string("new ") + T::kClass, info[0]);
    resident_ = *info[0].As<Napi::External<ResidentNetwork>>().Data();
  }

 protected:
  // Calls `compute` with the network and the cancel token, on the thread of the network. The promise resolves
  // to its result.
  template <typename Compute> Napi::Value start(const Napi::CallbackInfo& info, Compute compute) {
    return start_job(info.Env(), resident_->worker(), {.owner = Napi::Persistent(this->Value())},
                     StatusCode::inference_failed,
                     [resident = resident_.get(), compute = std::move(compute)](const Job& job) -> Result {
                       auto result = compute(*resident->object(), *job.cancel);
                       return [result = std::move(result)](Napi::Env e) -> Napi::Value {
                         return to_js(e, result);
                       };
                     });
  }

 private:
  using ResidentNetwork = std::shared_ptr<Resident<Network>>;

  static Napi::Value load(const Napi::CallbackInfo& info) {
    const auto make = T::make(read_object(info, 0, "options"));
    const auto resident = std::make_shared<Resident<Network>>(Environment::of(info.Env()).shared_from_this());
    return start_job(
        info.Env(), resident->worker(), {.holding = resident}, StatusCode::load_failed,
        [resident = resident.get(), make](const Job& job) -> Result {
          resident->object() = make();
          return [job](Napi::Env e) -> Napi::Value {
            Environment& environment = *job.environment;
            auto held = std::static_pointer_cast<Resident<Network>>(environment.find(job.id)->holding);
            return (environment.*T::kConstructor).New({Napi::External<ResidentNetwork>::New(e, &held)});
          };
        });
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    return close_resident(info.Env(), *resident_, this->Value());
  }

  ResidentNetwork resident_;
};

// The function that makes a network which computes with helper threads.
template <typename Network> auto make_with_threads(std::string path, int threads) {
  return [path = std::move(path), threads] {
    start_helper_threads(threads);
    return std::make_unique<Network>(path, threads);
  };
}

} // namespace voxgate

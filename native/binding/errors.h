#pragma once

#include "status.h"

#include <napi.h>

namespace voxgate {

// Only these two functions make JavaScript errors. Each error has a `code` of engine/types.ts, or
// `cancelled`, which the TypeScript side replaces by the reason of the signal.
Napi::Error make_error(Napi::Env env, const Status& status);

// An error such as "Expected a string for options.path but received 5 (number)".
Napi::Error argument_error(Napi::Env env, const std::string& expected, const std::string& name,
                           Napi::Value received);

// Turns C++ exceptions into JavaScript errors with a code. Every function that JavaScript or Node calls needs
// it, because a C++ exception that passes through them ends the process.
template <typename Callable> decltype(auto) guarded(Napi::Env env, Callable&& call) {
  try {
    return call();
  } catch (const Napi::Error&) {
    throw; // node-addon-api turns it into a JavaScript exception
  } catch (...) {
    throw make_error(env, current_status(StatusCode::inference_failed));
  }
}

// A guarded function of the addon that JavaScript can call.
template <auto kFunction> auto entry(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&info] { return kFunction(info); });
}

// The base of the addon's objects. The methods and getters that JavaScript calls are guarded.
template <typename T> class Wrapped : public Napi::ObjectWrap<T> {
 public:
  using Napi::ObjectWrap<T>::ObjectWrap;

 protected:
  using Method = Napi::Value (T::*)(const Napi::CallbackInfo&);

  template <auto kMethod> static Napi::ClassPropertyDescriptor<T> method(const char* name) {
    return Napi::ObjectWrap<T>::InstanceMethod(name, static_cast<Method>(&Wrapped::call<kMethod>));
  }
  template <auto kMethod> static Napi::ClassPropertyDescriptor<T> getter(const char* name) {
    return Napi::ObjectWrap<T>::InstanceAccessor(name, static_cast<Method>(&Wrapped::call<kMethod>), nullptr);
  }

 private:
  template <auto kMethod> Napi::Value call(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [this, &info] { return (static_cast<T*>(this)->*kMethod)(info); });
  }
};

} // namespace voxgate

#pragma once

#include "status.h"

#include <napi.h>

namespace voxgate {

// The only makers of JavaScript errors. Each has a `code` from engine/types.ts (and `cancelled`, which the
// TypeScript side turns into the reason of the signal).
Napi::Error make_error(Napi::Env env, const Status& status);

// "Expected a string for options.path but received 5 (number)".
Napi::Error argument_error(Napi::Env env, const std::string& expected, const std::string& name,
                           Napi::Value received);

// Around what JavaScript or Node calls, because a C++ exception that passes through either ends the process:
// it becomes a JavaScript error with a code.
template <typename Callable> decltype(auto) guarded(Napi::Env env, Callable&& call) {
  try {
    return call();
  } catch (const Napi::Error&) {
    throw; // node-addon-api hands it on
  } catch (...) {
    throw make_error(env, current_status(StatusCode::inference_failed));
  }
}

// A function of the addon, as JavaScript calls it.
template <auto kFunction> auto entry(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&info] { return kFunction(info); });
}

// An object of the addon; what JavaScript calls of it is guarded.
template <typename T> class Wrapped : public Napi::ObjectWrap<T> {
 public:
  using Napi::ObjectWrap<T>::ObjectWrap;

 protected:
  using Method = Napi::Value (T::*)(const Napi::CallbackInfo&);

  template <Method kMethod> static Napi::ClassPropertyDescriptor<T> method(const char* name) {
    return Napi::ObjectWrap<T>::InstanceMethod(name, static_cast<Method>(&Wrapped::call<kMethod>));
  }
  template <Method kMethod> static Napi::ClassPropertyDescriptor<T> getter(const char* name) {
    return Napi::ObjectWrap<T>::InstanceAccessor(name, static_cast<Method>(&Wrapped::call<kMethod>), nullptr);
  }

 private:
  template <Method kMethod> Napi::Value call(const Napi::CallbackInfo& info) {
    return guarded(info.Env(), [this, &info] { return (static_cast<T*>(this)->*kMethod)(info); });
  }
};

} // namespace voxgate

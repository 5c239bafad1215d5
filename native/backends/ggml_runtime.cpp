#include "backends/ggml_runtime.h"

#include "backends/cpu_library.h"
#include "backends/gpu_guard.h"
#include "backends/registry.h"
#include "status.h"

#include <ggml-backend.h>
#include <ggml.h>
#include <whisper.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace voxgate {
namespace {

LogSink g_sink = nullptr; // written once, before any library call that could log

void forward_log(ggml_log_level level, const char* text, void*) {
  static thread_local LogLevel last = LogLevel::info;
  switch (level) {
  case GGML_LOG_LEVEL_ERROR:
    last = LogLevel::error;
    note_gpu_error(text);
    break;
  case GGML_LOG_LEVEL_WARN:
    last = LogLevel::warn;
    break;
  case GGML_LOG_LEVEL_INFO:
    last = LogLevel::info;
    break;
  case GGML_LOG_LEVEL_CONT: // continues the previous line, on its level
    break;
  default:
    last = LogLevel::debug;
  }
  g_sink(last, text);
}

// ggml's own function starts a debugger for the stack, too, which takes seconds.
void print_abort(const char* message) {
  static_cast<void>(std::fprintf(stderr, "%s\n", message));
}

bool is_gpu(ggml_backend_dev_t device) {
  const auto type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

// ggml's libraries are "CUDA" and "Vulkan".
bool is_of(ggml_backend_dev_t device, std::string_view library) {
  const std::string_view name = ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
  return std::ranges::equal(name, library, [](char a, char b) { return (a | 0x20) == b; });
}

// What a library of ggml says that it was compiled with, by name; the list ends with a null.
const ggml_backend_feature* features_of(ggml_backend_reg_t library) {
  static constexpr ggml_backend_feature kNone{nullptr, nullptr};
  auto get = library == nullptr
                 ? nullptr
                 : reinterpret_cast<ggml_backend_get_features_t>(
                       ggml_backend_reg_get_proc_address(library, "ggml_backend_get_features"));
  const ggml_backend_feature* features = get == nullptr ? nullptr : get(library);
  return features == nullptr ? &kNone : features;
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> names;
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr)
    return names;
  for (const auto* feature = features_of(ggml_backend_dev_backend_reg(cpu)); feature->name != nullptr;
       ++feature) {
    if (std::string_view(feature->value) != "0")
      names.emplace_back(feature->name);
  }
  return names;
}

std::string cuda_architectures() {
  for (const auto* feature = features_of(ggml_backend_reg_by_name("CUDA")); feature->name != nullptr;
       ++feature) {
    if (std::string_view(feature->name) == "ARCHS")
      return feature->value;
  }
  return {};
}

// On GPUs since Hopper ggml starts a kernel before the one whose results it reads has ended (programmatic
// dependent launch), and some read too early: texts of Whisper on an H100 were wrong, and other ones each
// time.
void forbid_overlapping_kernels() {
#ifdef _WIN32
  _putenv_s("GGML_CUDA_PDL", "0");
#else
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the thread of JavaScript, which alone sets variables of a process
  setenv("GGML_CUDA_PDL", "0", 0);
#endif
}

} // namespace

void start_ggml(LogSink sink) {
  static std::once_flag once;
  std::call_once(once, [sink] {
    g_sink = sink;
    ggml_log_set(forward_log, nullptr);
    ggml_set_abort_callback(print_abort);
    for (const auto* family = FamilyRegistration::first(); family != nullptr; family = family->next) {
      if (family->set_log != nullptr)
        family->set_log(forward_log, nullptr);
    }
  });
}

void use_gpus(const std::vector<std::string>& folders) {
  static std::once_flag once;
  // A folder is always named: by itself ggml would look beside the executable and in the working directory.
  std::call_once(once, [&] {
    forbid_overlapping_kernels();
    for (const auto& folder : folders)
      ask_gpu([&] { ggml_backend_load_all_from_path(folder.c_str()); });
  });
}

EngineInfo engine_info() {
  EngineInfo info;
  info.whisper_version = whisper_version();
  info.ggml_version = ggml_version();
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    const auto ask = [&] { ggml_backend_dev_memory(device, &free_bytes, &total_bytes); };
    if (is_gpu(device) && !ask_gpu(ask))
      continue; // it is full, in another's use or broken: as good as absent
    if (!is_gpu(device))
      ask();
    info.devices.push_back({ggml_backend_dev_name(device), is_gpu(device), total_bytes});
  }
  info.cpu_level = cpu_level();
  info.cpu_features = cpu_features();
  info.cuda_architectures = cuda_architectures();
  return info;
}

int gpu_index(const std::string& device) {
  if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr)
    throw Failure(StatusCode::load_failed, missing_cpu_library());
  if (device == "cpu")
    return -1;

  const auto colon = device.find(':');
  const auto library = device.substr(0, colon);
  int wanted = 0;
  if (colon != std::string::npos) {
    const char* first = device.data() + colon + 1;
    const char* last = device.data() + device.size();
    const auto parsed = std::from_chars(first, last, wanted);
    if (parsed.ec != std::errc() || parsed.ptr != last || wanted < 0)
      throw Failure(StatusCode::invalid_argument,
                    "Expected cpu, cuda, vulkan, cuda:N or vulkan:N for device but received " + device);
  }
  int index = 0;
  int found = 0;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t gpu = ggml_backend_dev_get(i);
    if (!is_gpu(gpu))
      continue;
    if (is_of(gpu, library) && found++ == wanted)
      return index;
    ++index;
  }
  throw Failure(StatusCode::load_failed, "Device " + device + " was asked for but " + std::to_string(found) +
                                             " GPUs are usable here by " + library);
}

} // namespace voxgate

#include "backends/ggml_runtime.h"

#include "backends/registry.h"
#include "status.h"

#include <ggml-backend.h>
#include <ggml.h>
#include <whisper.h>

#include <charconv>
#include <filesystem>
#include <mutex>

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace voxgate {
namespace {

LogSink g_sink = nullptr; // written once, before any library call that could log

void forward_log(ggml_log_level level, const char* text, void*) {
  static thread_local LogLevel last = LogLevel::info;
  switch (level) {
  case GGML_LOG_LEVEL_ERROR:
    last = LogLevel::error;
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

// The folder of the library this code was linked into: the compute backends are installed beside it.
std::filesystem::path library_folder() {
#ifdef _WIN32
  return {};
#else
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
#endif
}

bool is_gpu(ggml_backend_dev_t device) {
  const auto type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> names;
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr)
    return names;
  auto get = reinterpret_cast<ggml_backend_get_features_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), "ggml_backend_get_features"));
  if (get == nullptr)
    return names;
  for (auto* feature = get(ggml_backend_dev_backend_reg(cpu)); feature != nullptr && feature->name != nullptr;
       ++feature) {
    if (std::string(feature->value) != "0")
      names.emplace_back(feature->name);
  }
  return names;
}

} // namespace

void start_ggml(LogSink sink) {
  static std::once_flag once;
  std::call_once(once, [sink] {
    g_sink = sink;
    ggml_log_set(forward_log, nullptr);
    for (const auto* family = FamilyRegistration::first(); family != nullptr; family = family->next) {
      if (family->set_log != nullptr)
        family->set_log(forward_log, nullptr);
    }
    // Never let ggml search by itself: its default is the folder of the executable and the working directory.
    const auto folder = library_folder();
    ggml_backend_load_all_from_path(folder.empty() ? "." : folder.string().c_str());
  });
}

void set_abort_sink(void (*sink)(const char* message)) {
  ggml_set_abort_callback(sink);
}

EngineInfo engine_info() {
  EngineInfo info;
  info.whisper_version = whisper_version();
  info.ggml_version = ggml_version();
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ggml_backend_dev_memory(device, &free_bytes, &total_bytes);
    info.devices.push_back(
        {ggml_backend_dev_name(device), ggml_backend_dev_description(device), is_gpu(device), total_bytes});
  }
  info.cpu_features = cpu_features();
  return info;
}

int gpu_index(const std::string& device) {
  if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr)
    throw Failure(StatusCode::load_failed,
                  "No CPU compute library was found beside the addon (libggml-cpu*.so)");
  if (device == "cpu")
    return -1;

  const auto colon = device.find(':');
  int wanted = 0;
  if (colon != std::string::npos) {
    const char* first = device.data() + colon + 1;
    const char* last = device.data() + device.size();
    const auto parsed = std::from_chars(first, last, wanted);
    if (parsed.ec != std::errc() || parsed.ptr != last || wanted < 0)
      throw Failure(StatusCode::invalid_argument,
                    "Expected cpu, cuda or cuda:N for device but received " + device);
  }
  int gpus = 0;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i)
    gpus += is_gpu(ggml_backend_dev_get(i)) ? 1 : 0;
  if (wanted >= gpus)
    throw Failure(StatusCode::load_failed, "Device " + device + " was asked for but " + std::to_string(gpus) +
                                               " GPUs are usable here");
  return wanted;
}

} // namespace voxgate

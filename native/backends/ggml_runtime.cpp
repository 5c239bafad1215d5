#include "backends/ggml_runtime.h"

#include "backends/gpu_guard.h"
#include "backends/registry.h"
#include "status.h"

#include <ggml-backend.h>
#include <ggml.h>
#include <whisper.h>

#include <algorithm>
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

// Why the libraries of the CPU backend that were found cannot be used, by their names.
std::string& cpu_troubles() {
  static std::string troubles;
  return troubles;
}

#ifndef _WIN32
// How well this processor suits a library: 0 if not at all. A library without an opinion suits every one.
int score_of(const std::filesystem::path& library) {
  using Score = int (*)();
  const auto name = library.filename().string();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror(); // NOLINT(concurrency-mt-unsafe): called once, before any other thread
    cpu_troubles() +=
        "; " + name + " cannot be loaded: " + (reason != nullptr ? reason : "for no stated reason");
    return 0;
  }
  const auto ask = reinterpret_cast<Score>(dlsym(handle, "ggml_backend_score"));
  const int score = ask != nullptr ? ask() : 1;
  dlclose(handle);
  if (score == 0)
    cpu_troubles() += "; " + name + " is compiled for another processor";
  return score;
}
#endif

// Loads the library that suits this CPU best, and one for BLAS where the build made it.
void load_cpu_library(const std::filesystem::path& folder) {
#ifdef _WIN32
  ggml_backend_load_all_from_path(folder.string().c_str());
#else
  std::filesystem::path best;
  int best_score = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("libggml-cpu") || !name.ends_with(".so"))
      continue;
    const int score = score_of(entry.path());
    if (score > best_score)
      best = entry.path();
    best_score = std::max(score, best_score);
  }
  if (best_score > 0)
    ggml_backend_load(best.c_str());
  if (const auto blas = folder / "libggml-blas.so"; std::filesystem::exists(blas, error))
    ggml_backend_load(blas.c_str());
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
    load_cpu_library(library_folder());
  });
}

void use_gpus() {
  static std::once_flag once;
  // The folder is always named: by itself ggml would look beside the executable and in the working directory.
  std::call_once(once, [] {
    const auto folder = library_folder().string();
    ask_gpu([&] { ggml_backend_load_all_from_path(folder.c_str()); });
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
    const auto ask = [&] { ggml_backend_dev_memory(device, &free_bytes, &total_bytes); };
    if (is_gpu(device) && !ask_gpu(ask))
      continue; // it is full, in another's use or broken: as good as absent
    if (!is_gpu(device))
      ask();
    info.devices.push_back(
        {ggml_backend_dev_name(device), ggml_backend_dev_description(device), is_gpu(device), total_bytes});
  }
  info.cpu_features = cpu_features();
  return info;
}

std::string missing_cpu_library() {
  if (cpu_troubles().empty())
    return "No CPU compute library was found beside the addon (libggml-cpu*.so)";
  return "No CPU compute library can be used here" + cpu_troubles() +
         ". Compile it on this machine with: npm run build:native";
}

int gpu_index(const std::string& device) {
  if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr)
    throw Failure(StatusCode::load_failed, missing_cpu_library());
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

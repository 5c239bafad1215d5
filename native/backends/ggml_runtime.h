#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The state of ggml that the process has once: its registry of compute backends and its log. Safe to call
// from any thread and from several Node environments.

namespace voxgate {

enum class LogLevel { debug, info, warn, error };

using LogSink = void (*)(LogLevel level, const char* text);

// Routes every log line of ggml and of the families' libraries to `sink`, which may be called by any thread.
// Only the first call acts; a later one gives the same sink.
void start_ggml(LogSink sink);

// Loads the compute backends of GPUs in these folders too, and with them their drivers, which take memory on
// the GPU. Without it no GPU is asked anything. Only the first call acts.
void use_gpus(const std::vector<std::string>& folders);

struct ComputeDevice {
  std::string name;
  bool gpu = false;
  uint64_t memory_bytes = 0;
};

struct EngineInfo {
  std::string whisper_version;
  std::string ggml_version;
  std::vector<ComputeDevice> devices;
  std::string cpu_level; // backends/cpu_library.h
  std::vector<std::string> cpu_features;
  std::string cuda_architectures; // for which the CUDA library has code, as "800,900"; empty without it
};

// A GPU that does not answer is left out.
EngineInfo engine_info();

// -1 for "cpu"; else the index of a GPU as whisper.cpp counts them, which is over all libraries. Throws
// Failure{load_failed} when the named device is not there, or when no CPU backend could be loaded (every
// model needs one).
int gpu_index(const std::string& device);

} // namespace voxgate

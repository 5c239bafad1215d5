#include "backends/cpu_library.h"

#include "kernels/cpu_level.h"
#include "layers/panels.h"
#include "status.h"

#include <ggml-backend.h>

#include <algorithm>
#include <mutex>
#include <vector>

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace voxgate {
namespace {

constexpr const char* kAuto = "auto";
// The levels of products in bfloat16, which the library has beside its own.
constexpr const char* kBfloat16 = "avx512_bf16";
constexpr const char* kTiles = "amx";

// Why the libraries that were found cannot be used, by their names.
std::string& troubles() {
  static std::string text;
  return text;
}

// The level of the library that is loaded; null without one.
const CpuLevel* loaded_level() {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr)
    return nullptr;
  const auto get = reinterpret_cast<GetCpuLevel>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), kGetCpuLevel));
  return get != nullptr ? get() : nullptr;
}

#ifndef _WIN32

struct CpuLibrary {
  std::filesystem::path path;
  std::vector<std::string> levels; // with those of bfloat16 where it has them
  int score;                       // how well this processor suits it: 0 if not at all
};

CpuLibrary examined(const std::filesystem::path& path) {
  using Score = int (*)();
  CpuLibrary library{path, {}, 0};
  const auto name = path.filename().string();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror(); // NOLINT(concurrency-mt-unsafe): called once, before any other thread
    troubles() += "; " + name + " cannot be loaded: " + (reason != nullptr ? reason : "for no stated reason");
    return library;
  }
  // A library without an opinion suits every processor.
  const auto ask = reinterpret_cast<Score>(dlsym(handle, "ggml_backend_score"));
  library.score = ask != nullptr ? ask() : 1;
  if (const auto get = reinterpret_cast<GetCpuLevel>(dlsym(handle, kGetCpuLevel)); get != nullptr) {
    const CpuLevel& level = *get();
    library.levels.emplace_back(level.name);
    if (library.score > 0 && level.bfloat16() >= Bfloat16::vectors)
      library.levels.emplace_back(kBfloat16);
    if (library.score > 0 && level.bfloat16() == Bfloat16::tiles)
      library.levels.emplace_back(kTiles);
  }
  dlclose(handle);
  if (library.score == 0)
    troubles() += "; " + name + " is compiled for another processor";
  return library;
}

std::vector<CpuLibrary> cpu_libraries(const std::filesystem::path& folder) {
  std::vector<CpuLibrary> libraries;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("libggml-cpu") && name.ends_with(".so"))
      libraries.push_back(examined(entry.path()));
  }
  // From the least to the best, in an order that does not depend on the folder.
  std::ranges::sort(libraries, [](const CpuLibrary& a, const CpuLibrary& b) {
    return a.score != b.score ? a.score < b.score : a.path < b.path;
  });
  return libraries;
}

// Lists the levels of the libraries, or of those that this processor suits.
std::string names_of(const std::vector<CpuLibrary>& libraries, bool usable) {
  std::string names;
  for (const auto& library : libraries)
    if (!usable || library.score > 0)
      for (const auto& level : library.levels)
        names += (names.empty() ? "" : ", ") + level;
  return names.empty() ? "none" : names;
}

const CpuLibrary& library_of(const std::string& level, const std::vector<CpuLibrary>& libraries) {
  const auto has = [&](const CpuLibrary& library) { return std::ranges::count(library.levels, level) > 0; };
  const auto found = std::ranges::find_if(libraries, has);
  if (found != libraries.end() && found->score > 0)
    return *found;
  if (found != libraries.end() || ((level == kTiles || level == kBfloat16) &&
                                   names_of(libraries, false).find("avx512_vnni") != std::string::npos))
    throw Failure(StatusCode::invalid_argument,
                  "This processor does not have " + level +
                      "; of this build it can use: " + names_of(libraries, true));
  throw Failure(StatusCode::invalid_argument,
                "This build has no kernels for " + level + ", only for: " + names_of(libraries, false) +
                    ". `npm run build -- --cpu=all` compiles those of all levels");
}

void load(const std::string& level) {
  const auto folder = library_folder();
  const auto libraries = cpu_libraries(folder);
  if (level != kAuto)
    ggml_backend_load(library_of(level, libraries).path.c_str());
  else if (!libraries.empty() && libraries.back().score > 0)
    ggml_backend_load(libraries.back().path.c_str());
  std::error_code error;
  if (const auto blas = folder / "libggml-blas.so"; std::filesystem::exists(blas, error))
    ggml_backend_load(blas.c_str());
  const CpuLevel* const loaded = loaded_level();
  if (loaded != nullptr && level != kAuto && level != kTiles)
    loaded->limit_bfloat16(level == kBfloat16 ? Bfloat16::vectors : Bfloat16::none);
}

#else

void load(const std::string&) {
  ggml_backend_load_all_from_path(library_folder().string().c_str());
}

#endif

// The loops for speakers are no part of the library, and go along with it.
void limit_panels(const std::string& level) {
  const auto vectors = level == kTiles               ? PanelVectors::tiles
                       : level.starts_with("avx512") ? PanelVectors::avx512
                       : level.starts_with("avx2")   ? PanelVectors::avx2
                                                     : PanelVectors::narrow;
  Panels::use(std::min(vectors, Panels::widest()));
}

} // namespace

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

void use_cpu(const std::string& level) {
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard lock(mutex);
  if (done && level != kAuto && level != cpu_level())
    throw Failure(StatusCode::invalid_argument,
                  "This process computes with " + cpu_level() + " already, not with " + level);
  if (done)
    return;
  load(level);
  done = true;
  if (loaded_level() != nullptr)
    limit_panels(cpu_level());
}

std::string cpu_level() {
  const CpuLevel* const level = loaded_level();
  if (level == nullptr)
    return "";
  switch (level->bfloat16()) {
  case Bfloat16::tiles:
    return kTiles;
  case Bfloat16::vectors:
    return kBfloat16;
  default:
    return level->name;
  }
}

std::string missing_cpu_library() {
  if (troubles().empty())
    return "No CPU compute library was found beside the addon (libggml-cpu*.so)";
  return "No CPU compute library can be used here" + troubles() +
         ". Compile it on this machine with: npm run build";
}

} // namespace voxgate

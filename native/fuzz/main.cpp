// One program for all targets, so that the code under test is linked once: `voxgate-fuzz --target=NAME` and
// any options of libFuzzer (https://llvm.org/docs/LibFuzzer.html#options). With `--seeds=FOLDER` it writes
// the target's own seeds there and ends. `npm run fuzz` calls it with the limits that inputs must keep.
#include "target.h"

#include "backends/ggml_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace voxgate::fuzz;

namespace {

constexpr const Target* kTargets[] = {&kWav,      &kMp3,  &kFlac,       &kVorbis, &kWhisper,
                                      &kParakeet, &kGguf, &kSenseVoice, &kSilero, &kText};

const Target* g_target = nullptr;

std::string_view option(int count, char** arguments, std::string_view name) {
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with(name))
      return argument.substr(name.size());
  }
  return {};
}

void write_seeds(const Target& target, const std::string& folder) {
  int number = 0;
  for (const auto& seed : target.seeds()) {
    const auto path = folder + "/made-" + std::to_string(number++);
    std::ofstream(path, std::ios::binary).write(seed.data(), static_cast<std::streamsize>(seed.size()));
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const auto wanted = option(*count, *arguments, "--target=");
  for (const auto* target : kTargets)
    g_target = target->name == wanted ? target : g_target;
  if (g_target == nullptr) {
    std::fputs("Give --target= one of:", stderr);
    for (const auto* target : kTargets)
      std::fprintf(stderr, " %s", std::string(target->name).c_str());
    std::fputs("\n", stderr);
    std::exit(2);
  }
  voxgate::start_ggml([](voxgate::LogLevel, const char*) {});
  if (const auto folder = option(*count, *arguments, "--seeds="); !folder.empty()) {
    write_seeds(*g_target, std::string(folder));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  g_target->run({data, size});
  return 0;
}

#include "harness.h"

#include "backends/cpu_library.h"
#include "backends/ggml_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace voxgate::test {
namespace {

std::filesystem::path folder() {
  static const auto path =
      std::filesystem::temp_directory_path() /
      ("voxgate-test-" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  return path;
}

void run(const Case& test, int& failures, int& skips) {
  const auto start = std::chrono::steady_clock::now();
  std::string verdict = "ok  ";
  std::string detail;
  try {
    test.body();
  } catch (const Failed& failed) {
    verdict = "FAIL";
    detail = failed.what;
  } catch (const Skipped& skipped) {
    verdict = "skip";
    detail = skipped.why;
  } catch (...) {
    verdict = "FAIL";
    detail = "threw: " + current_status(StatusCode::inference_failed).message;
  }
  failures += verdict == "FAIL" ? 1 : 0;
  skips += verdict == "skip" ? 1 : 0;
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
  std::cout << verdict << " " << test.name << " (" << ms << " ms)" << (detail.empty() ? "" : ": ") << detail
            << '\n'
            << std::flush; // at once, so that it is seen also when a test hangs
}

// Whether a test has one of these in its name, where there are any, and none of those behind a minus.
bool is_chosen(const std::string& name, const std::vector<std::string>& words) {
  const auto has = [&](const std::string& part) { return name.find(part) != std::string::npos; };
  const auto leaves_out = [](const std::string& word) { return word.starts_with('-'); };
  if (std::ranges::any_of(words, [&](const auto& word) { return leaves_out(word) && has(word.substr(1)); }))
    return false;
  return std::ranges::all_of(words, leaves_out) ||
         std::ranges::any_of(words, [&](const auto& word) { return !leaves_out(word) && has(word); });
}

// Takes `--part=1/2` out of the words, with one digit each: the first of two parts, each of which has every
// second test. A run without it has all of them.
std::pair<int, int> part_of(std::vector<std::string>& words) {
  const auto found =
      std::ranges::find_if(words, [](const auto& word) { return word.starts_with("--part="); });
  if (found == words.end())
    return {0, 1};
  const std::string digits = found->substr(std::string("--part=").size());
  words.erase(found);
  return {digits.at(0) - '1', digits.at(2) - '0'};
}

} // namespace

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

void check(bool condition, const char* expression, const char* file, int line) {
  if (!condition)
    throw Failed{std::string(file) + ":" + std::to_string(line) + ": " + expression};
}

std::string setting(const char* variable, const std::string& meaning) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0')
    throw Skipped{std::string(variable) + " does not name " + meaning};
  return value;
}

std::string weights_from(const char* variable) {
  return setting(variable, "a model file");
}

std::string temporary(const std::string& name) {
  std::filesystem::create_directories(folder());
  return (folder() / name).string();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_file(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

StatusCode failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.status().code;
  }
  throw Failed{"expected a Failure but nothing was thrown"};
}

std::string reason_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.status().message;
  }
  return "";
}

} // namespace voxgate::test

int main(int argc, char** argv) {
  using namespace voxgate::test;
  voxgate::start_ggml([](voxgate::LogLevel, const char*) {});
  if (std::string(VOXGATE_TEST_LEVEL) == "all") {
    const char* level = std::getenv("SVC_CPU");
    voxgate::use_cpu(level != nullptr ? level : "auto");
  }
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto [part, parts] = part_of(words);
  int failures = 0;
  int skips = 0;
  int ran = 0;
  int chosen = 0;
  for (const auto& test : cases()) {
    if (!is_chosen(test.name, words) || chosen++ % parts != part)
      continue;
    ++ran;
    run(test, failures, skips);
  }
  std::filesystem::remove_all(folder());
  std::cout << ran << " tests, " << failures << " failed, " << skips << " skipped\n";
  return failures == 0 && ran > 0 ? 0 : 1;
}

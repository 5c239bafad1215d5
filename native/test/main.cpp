#include "harness.h"

#include "backends/ggml_runtime.h"

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
            << std::endl; // flushed at once, so that it is seen also when a test hangs
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

std::string weights_from(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == '\0')
    throw Skipped{std::string(variable) + " does not name a model file"};
  return path;
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
  const std::string filter = argc > 1 ? argv[1] : "";
  int failures = 0;
  int skips = 0;
  int ran = 0;
  for (const auto& test : cases()) {
    if (test.name.find(filter) == std::string::npos)
      continue;
    ++ran;
    run(test, failures, skips);
  }
  std::filesystem::remove_all(folder());
  std::cout << ran << " tests, " << failures << " failed, " << skips << " skipped\n";
  return failures == 0 && ran > 0 ? 0 : 1;
}

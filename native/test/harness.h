#pragma once

#include "status.h"

#include <functional>
#include <iostream>
#include <string>
#include <vector>

// This is as little of a test framework as suffices: TEST registers a test, CHECK throws, and main runs the
// tests whose names contain one of its arguments, and none that stands behind a minus.

namespace voxgate::test {

struct Case {
  std::string name;
  std::function<void()> body;
};
std::vector<Case>& cases();

struct Register {
  Register(std::string name, std::function<void()> body) {
    cases().push_back({std::move(name), std::move(body)});
  }
};

struct Failed {
  std::string what;
};
struct Skipped {
  std::string why;
};

void check(bool condition, const char* expression, const char* file, int line);

// Gives the value of an environment variable, which is `meaning`; the test is skipped without it.
std::string setting(const char* variable, const std::string& meaning);
// The same for the path of a model file.
std::string weights_from(const char* variable);

// Names a file in the test's own folder, which is removed at exit.
std::string temporary(const std::string& name);
void write_file(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path);

// Gives the code of the Failure that `action` throws; the check fails when it throws none.
StatusCode failure_of(const std::function<void()>& action);

// Gives the message of the Failure that `action` throws, and nothing when it throws none.
std::string reason_of(const std::function<void()>& action);

} // namespace voxgate::test

#define VOXGATE_JOIN_(a, b) a##b
#define VOXGATE_JOIN(a, b) VOXGATE_JOIN_(a, b)
#define TEST(name)                                                                                           \
  static void VOXGATE_JOIN(test_body_, __LINE__)();                                                          \
  static const voxgate::test::Register VOXGATE_JOIN(test_case_,                                              \
                                                    __LINE__)(name, VOXGATE_JOIN(test_body_, __LINE__));     \
  static void VOXGATE_JOIN(test_body_, __LINE__)()
#define CHECK(condition) voxgate::test::check((condition), #condition, __FILE__, __LINE__)

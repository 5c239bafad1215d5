#pragma once

#include "harness.h"

#include <sys/wait.h>
#include <unistd.h>

namespace voxgate::test {

// Runs the body of a test in a child, and fails as it does. For what stays in the process that did it. The
// child has no threads but the one that runs it.
inline void apart(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      body();
      code = 0;
    } catch (const Failed& failed) {
      std::cerr << failed.what << '\n' << std::flush;
    } catch (...) {
      std::cerr << "threw " << current_status(StatusCode::closed).message << '\n' << std::flush;
    }
    _exit(code);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status)); // no signal ended it
  CHECK(WEXITSTATUS(status) == 0);
}

} // namespace voxgate::test

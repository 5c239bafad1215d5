#include "harness.h"

#include "backends/registry.h"

#include <algorithm>

using namespace voxgate;
using namespace voxgate::test;

namespace {

std::unique_ptr<Backend> load_test_family(const LoadOptions&, const CancelToken&) {
  throw Failure(StatusCode::load_failed, "This is the family of the test");
}

// This is all that a new family has to write. No code refers to it, and no list names it.
const FamilyRegistration registration{"family of the test", load_test_family};

std::string message_of(const std::string& family) {
  try {
    load_model({family, "", "cpu", 1}, CancelToken());
  } catch (const Failure& failure) {
    return failure.what();
  }
  throw Failed{"expected a Failure but nothing was thrown"};
}

} // namespace

TEST("registry: every family of the build is found by its name, and no other") {
  for (const char* name : {"whisper", "parakeet", "sensevoice", "family of the test"})
    CHECK(has_family(name));
#ifdef VOXGATE_FAKE_BACKEND
  CHECK(has_family("fake"));
#else
  CHECK(!has_family("fake"));
#endif
  CHECK(!has_family("") && !has_family("whisper ") && !has_family("magic"));
}

TEST("registry: no name is taken twice") {
  auto names = family_names();
  CHECK(std::ranges::is_sorted(names));
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

TEST("registry: a family that registers itself is loaded, and an unknown one is answered with those there "
     "are") {
  CHECK(message_of("family of the test") == "This is the family of the test");
  CHECK(message_of("magic").starts_with("There is no model family \"magic\" in this build; it has "));
  CHECK(message_of("magic").find("parakeet, sensevoice, whisper") != std::string::npos);
  CHECK(failure_of([] {
          load_model({"magic", "", "cpu", 1}, CancelToken());
        }) == StatusCode::invalid_argument);
}

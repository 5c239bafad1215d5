#include "backend.h"

#include "backends/parakeet.h"
#include "backends/sensevoice.h"
#include "backends/whisper.h"
#ifdef VOXGATE_FAKE_BACKEND
#include "backends/fake.h"
#endif

namespace voxgate {

std::span<const BackendEntry> backends() {
  static constexpr BackendEntry entries[] = {
      {"whisper", load_whisper},
      {"parakeet", load_parakeet},
      {"sensevoice", load_sensevoice},
#ifdef VOXGATE_FAKE_BACKEND
      {"fake", load_fake},
#endif
  };
  return entries;
}

} // namespace voxgate

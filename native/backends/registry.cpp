#include "backend.h"

#include "backends/gpu_guard.h"
#include "backends/parakeet/parakeet_backend.h"
#include "backends/sensevoice/sensevoice_backend.h"
#include "backends/whisper/whisper_backend.h"
#ifdef VOXGATE_FAKE_BACKEND
#include "backends/fake/fake_backend.h"
#endif

namespace voxgate {
namespace {

template <BackendFactory kLoad>
std::unique_ptr<Backend> guarded(const LoadOptions& options, const CancelToken& cancel) {
  return load_guarded(kLoad, options, cancel);
}

} // namespace

std::span<const BackendEntry> backends() {
  static constexpr BackendEntry entries[] = {
      {"whisper", guarded<load_whisper>},
      {"parakeet", guarded<load_parakeet>},
      {"sensevoice", guarded<load_sensevoice>},
#ifdef VOXGATE_FAKE_BACKEND
      {"fake", load_fake},
#endif
  };
  return entries;
}

} // namespace voxgate

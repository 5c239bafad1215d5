#include "cpu_level.h"

#include "amx_tiles.h"
#include "vectors.h"

namespace voxgate {
namespace {

constexpr const char* kName =
#if defined(VOXGATE_NEON) && defined(__ARM_FEATURE_MATMUL_INT8)
    "neon_i8mm";
#elif defined(VOXGATE_NEON) && defined(VOXGATE_HAS_QUADS)
    "neon_dotprod";
#elif defined(VOXGATE_NEON)
    "neon";
#elif defined(VOXGATE_WIDE_VECTORS) && defined(VOXGATE_HAS_QUADS)
    "avx512_vnni";
#elif defined(VOXGATE_WIDE_VECTORS)
    "avx512";
#elif defined(VOXGATE_HAS_QUADS)
    "avx2_vnni";
#elif defined(VOXGATE_HAS_VECTORS)
    "avx2";
#elif defined(__AVX__)
    "avx";
#elif defined(__x86_64__)
    "sse2";
#else
    "generic";
#endif

#ifdef VOXGATE_HAS_TILES
constexpr CpuLevel kLevel{kName, may_use_tiles, leave_out_tiles};
#else
constexpr CpuLevel kLevel{kName, [] { return false; }, [] {}};
#endif

} // namespace
} // namespace voxgate

// Found by name, since this library is loaded at run time.
extern "C" const voxgate::CpuLevel* voxgate_cpu_level() {
  return &voxgate::kLevel;
}

#include "cpu_level.h"

#include "amx_tiles.h"
#include "vectors.h"

#ifdef VOXGATE_HAS_BFLOAT16
#include <atomic>
#endif

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

#ifdef VOXGATE_HAS_BFLOAT16
std::atomic<Bfloat16> g_most_bfloat16 = Bfloat16::tiles;

constexpr CpuLevel kLevel{kName, bfloat16_products, limit_bfloat16};
#else
constexpr CpuLevel kLevel{kName, [] { return Bfloat16::none; }, [](Bfloat16) {}};
#endif

} // namespace

#ifdef VOXGATE_HAS_BFLOAT16
void limit_bfloat16(Bfloat16 most) {
  g_most_bfloat16 = most;
}

Bfloat16 bfloat16_products() {
  Bfloat16 most = g_most_bfloat16.load(std::memory_order_relaxed);
#ifdef VOXGATE_TESTS
  most = std::min(most, kernel_calls.bfloat16.load());
#endif
  return std::min(processor_bfloat16(), most);
}
#endif

} // namespace voxgate

// Found by name, since this library is loaded at run time.
extern "C" const voxgate::CpuLevel* voxgate_cpu_level() {
  return &voxgate::kLevel;
}

#include "cpu_level.h"

#include "amx_tiles.h"
#include "vectors.h"

#ifdef VOXGATE_HAS_BFLOAT16
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  static const Bfloat16 there = [] {
    constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24, kInt8 = 1U << 25, kVectorBf16 = 1U << 5;
    constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kVectorBf16) == 0)
      return Bfloat16::none;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (~d & (kBf16 | kTiles | kInt8)) != 0)
      return Bfloat16::vectors;
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0 ? Bfloat16::tiles : Bfloat16::vectors;
  }();
  Bfloat16 most = g_most_bfloat16.load(std::memory_order_relaxed);
#ifdef VOXGATE_TESTS
  most = std::min(most, kernel_calls.bfloat16.load());
#endif
  return std::min(there, most);
}
#endif

} // namespace voxgate

// Found by name, since this library is loaded at run time.
extern "C" const voxgate::CpuLevel* voxgate_cpu_level() {
  return &voxgate::kLevel;
}

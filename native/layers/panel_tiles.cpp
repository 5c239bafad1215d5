#include "layers/panel_tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>

namespace voxgate {
namespace {

// Rounds to the nearest, and to an even one of two.
uint16_t rounded(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float widened(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

} // namespace

PanelTiles::PanelTiles(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs)
    : blocks_(weight.size() / outputs / kBlock), weights_(outputs / kTile * blocks_), bias_(outputs / kTile) {
  const size_t depth = blocks_ * kBlock;
  for (size_t i = 0; i < weight.size(); ++i) {
    const size_t output = i / depth;
    const size_t at = i % depth;
    const size_t pair = at % kBlock / 2;
    auto& tile = weights_[output / kTile * blocks_ + at / kBlock];
    const size_t place = (pair * kTile + output % kTile) * 2 + at % 2;
    tile.high[place] = rounded(weight[i]);
    tile.low[place] = rounded(weight[i] - widened(tile.high[place]));
  }
  for (size_t i = 0; i < bias.size(); ++i)
    bias_[i / kTile].values[i % kTile] = bias[i];
}

bool PanelTiles::fits(size_t outputs, size_t width, size_t depth) {
  return outputs % (2 * kTile) == 0 && width % kBlock == 0 && depth <= kDeepest;
}

#if defined(__x86_64__) && defined(__linux__)

namespace {

constexpr size_t kRows = 16;
constexpr size_t kLine = 64; // bytes of a row of a tile

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// gcc 12 leaves out the stores to a variable of which only the instruction knows that it reads all.
const volatile TileConfig kConfig;

__attribute__((target("avx512f"))) inline __m512 wide(__m256i half) {
  return (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

// Both tiles of rows for each block, then what rounding left of them. Rows past the last repeat it; what they
// give is not stored.
__attribute__((target("avx512f,avx512bf16"))) void lay_out(const PanelRows& rows, size_t first, size_t count,
                                                           uint16_t* to) {
  constexpr size_t kTiles = 2 * kRows * PanelTiles::kBlock;
  for (size_t row = 0; row < 2 * kRows; ++row) {
    const float* source = rows.data + (first + std::min(row, count - 1)) * rows.stride;
    uint16_t* target = to + row * PanelTiles::kBlock;
    for (size_t piece = 0; piece < rows.pieces; ++piece)
      for (size_t at = 0; at < rows.width; at += PanelTiles::kBlock, target += 2 * kTiles) {
        const float* values = source + piece * rows.step + at;
        const __m512 some = _mm512_loadu_ps(values);
        const __m512 others = _mm512_loadu_ps(values + 16);
        const auto high = (__m512i)_mm512_cvtne2ps_pbh(others, some);
        const __m512 some_left = _mm512_sub_ps(some, wide(_mm512_castsi512_si256(high)));
        const __m512 others_left = _mm512_sub_ps(others, wide(_mm512_extracti64x4_epi64(high, 1)));
        _mm512_store_si512(target, high);
        _mm512_store_si512(target + kTiles, (__m512i)_mm512_cvtne2ps_pbh(others_left, some_left));
      }
  }
}

} // namespace

__attribute__((target("amx-tile,amx-bf16"))) void PanelTiles::multiply(const PanelRows& rows, size_t count,
                                                                       float* out, size_t out_stride) const {
  alignas(64) uint16_t packed[4 * kRows * kDeepest];
  alignas(64) float last[2 * kRows][2 * kTile]; // of rows that are fewer than two tiles
  _tile_loadconfig(const_cast<const TileConfig*>(&kConfig));
  for (size_t first = 0; first < count; first += 2 * kRows) {
    const size_t left = std::min(2 * kRows, count - first);
    const bool whole = left == 2 * kRows;
    lay_out(rows, first, left, packed);
    for (size_t panel = 0; panel < bias_.size(); panel += 2) {
      __asm__ volatile("" ::: "memory"); // gcc 12 does not know that loading a tile reads memory
      const Tile* weights = &weights_[panel * blocks_];
      _tile_loadd(0, bias_[panel].values, 0); // the same row, sixteen times
      _tile_loadd(1, bias_[panel + 1].values, 0);
      _tile_loadd(2, bias_[panel].values, 0);
      _tile_loadd(3, bias_[panel + 1].values, 0);
      for (size_t block = 0; block < blocks_; ++block) {
        const uint16_t* high = packed + block * 4 * kRows * kBlock;
        const uint16_t* low = high + 2 * kRows * kBlock;
        _tile_loadd(4, high, kLine);
        _tile_loadd(5, high + kRows * kBlock, kLine);
        _tile_loadd(6, weights[block].low, kLine);
        _tile_loadd(7, weights[blocks_ + block].low, kLine);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        _tile_loadd(6, weights[block].high, kLine);
        _tile_loadd(7, weights[blocks_ + block].high, kLine);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        _tile_loadd(4, low, kLine);
        _tile_loadd(5, low + kRows * kBlock, kLine);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      float* target = whole ? out + first * out_stride + panel * kTile : last[0];
      const size_t stride = whole ? out_stride : 2 * kTile;
      const size_t bytes = stride * sizeof(float);
      _tile_stored(0, target, bytes);
      _tile_stored(1, target + kTile, bytes);
      _tile_stored(2, target + kRows * stride, bytes);
      _tile_stored(3, target + kRows * stride + kTile, bytes);
      __asm__ volatile("" ::: "memory");
      for (size_t row = 0; !whole && row < left; ++row)
        std::memcpy(out + (first + row) * out_stride + panel * kTile, last[row], sizeof last[row]);
    }
  }
  _tile_release();
}

#else

void PanelTiles::multiply(const PanelRows&, size_t, float*, size_t) const {}

#endif

} // namespace voxgate

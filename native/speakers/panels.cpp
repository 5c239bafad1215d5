#include "speakers/panels.h"

#include "vector_clones.h"

#include <algorithm>

namespace voxgate {

namespace {

constexpr size_t kLanes = Panels::kLanes;
constexpr size_t kTogether = 4; // rows whose sums just fit into the registers
constexpr size_t kRun = 32;     // products that are added up by themselves, because long sums lose digits

} // namespace

Panels::Panels(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs)
    : outputs_(outputs), depth_(weight.size() / outputs) {
  const size_t panels = (outputs + kLanes - 1) / kLanes;
  weights_.resize(panels * depth_);
  bias_.resize(panels);
  for (size_t i = 0; i < weight.size(); ++i) {
    const size_t output = i / depth_;
    weights_[output / kLanes * depth_ + i % depth_].values[output % kLanes] = weight[i];
  }
  for (size_t i = 0; i < bias.size(); ++i)
    bias_[i / kLanes].values[i % kLanes] = bias[i];
}

VOXGATE_VECTOR_CLONES
void Panels::multiply(const PanelRows& rows, size_t count, float* out, size_t out_stride) const {
  for (size_t panel = 0; panel < bias_.size(); ++panel) {
    const size_t filled = std::min(kLanes, outputs_ - panel * kLanes);
    for (size_t row = 0; row < count; row += kTogether) {
      // Where fewer rows are left, the last one is computed several times.
      const float* sources[kTogether];
      float totals[kTogether][kLanes];
      for (size_t i = 0; i < kTogether; ++i) {
        sources[i] = rows.data + std::min(row + i, count - 1) * rows.stride;
        for (size_t lane = 0; lane < kLanes; ++lane)
          totals[i][lane] = bias_[panel].values[lane];
      }
      const Lanes* weights = &weights_[panel * depth_];
      for (size_t piece = 0; piece < rows.pieces; ++piece)
        for (size_t begin = 0; begin < rows.width; begin += kRun) {
          const size_t run = std::min(kRun, rows.width - begin);
          float sums[kTogether][kLanes] = {};
          for (size_t k = 0; k < run; ++k)
            for (size_t i = 0; i < kTogether; ++i)
              for (size_t lane = 0; lane < kLanes; ++lane)
                sums[i][lane] += weights[k].values[lane] * sources[i][piece * rows.step + begin + k];
          for (size_t i = 0; i < kTogether; ++i)
            for (size_t lane = 0; lane < kLanes; ++lane)
              totals[i][lane] += sums[i][lane];
          weights += run;
        }
      for (size_t i = 0; i < kTogether && row + i < count; ++i)
        std::copy_n(totals[i], filled, out + (row + i) * out_stride + panel * kLanes);
    }
  }
}

std::vector<float> taps_first(const std::vector<float>& weight, size_t outputs, size_t taps) {
  const size_t inputs = weight.size() / outputs / taps;
  std::vector<float> result(weight.size());
  for (size_t output = 0; output < outputs; ++output)
    for (size_t input = 0; input < inputs; ++input)
      for (size_t tap = 0; tap < taps; ++tap)
        result[(output * taps + tap) * inputs + input] = weight[(output * inputs + input) * taps + tap];
  return result;
}

} // namespace voxgate

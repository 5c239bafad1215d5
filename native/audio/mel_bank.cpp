#include "audio/mel_bank.h"

#include <algorithm>

namespace voxgate {

MelBank::MelBank(std::span<const float> filters, size_t bands) : bands_(bands) {
  const size_t bins = filters.size() / bands;
  const auto counts = [](float weight) { return weight != 0; };
  for (size_t i = 0; i < bands; ++i) {
    const auto row = filters.subspan(i * bins, bins);
    const auto first = std::ranges::find_if(row, counts);
    const auto end = std::find_if(row.rbegin(), row.rend(), counts).base();
    if (first < end)
      bands_[i] = {static_cast<size_t>(first - row.begin()), std::vector(first, end)};
  }
}

void MelBank::energies(std::span<const Values> powers, std::span<Values> out) const {
  for (size_t i = 0; i < bands_.size(); ++i) {
    const auto& [first_bin, weights] = bands_[i];
    Values sum{};
    for (size_t bin = 0; bin < weights.size(); ++bin)
      sum += weights[bin] * powers[first_bin + bin];
    out[i] = sum;
  }
}

} // namespace voxgate

#pragma once

// The part of each mel filter that parakeet.cpp has to multiply: it adds up groups of four bins, and most
// weights are zero.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace voxgate {

struct FilterGroups {
  int first;  // bin, a multiple of four
  int second; // the bin behind the last weight that is not zero; `first` or less where there is none
};

// `filters` has `bins` weights for each filter. Groups that are left out would add zeros, so that the sum
// has the same bits.
inline std::vector<FilterGroups> filter_groups(const std::vector<float>& filters, int bins) {
  const auto is_part = [](float weight) { return weight != 0; };
  std::vector<FilterGroups> groups;
  for (auto row = filters.begin(); row != filters.end(); row += bins) {
    const auto first = std::find_if(row, row + bins, is_part) - row;
    auto last = static_cast<std::ptrdiff_t>(bins);
    while (last > first && !is_part(row[last - 1]))
      --last;
    groups.push_back({static_cast<int>(first / 4 * 4), static_cast<int>(last)});
  }
  return groups;
}

} // namespace voxgate

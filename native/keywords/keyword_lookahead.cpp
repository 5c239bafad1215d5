#include "keywords/keyword_lookahead.h"

#include <algorithm>

namespace voxgate {

std::optional<int32_t> KeywordLookahead::choose(TransducerPlace place, const Transducer::Scores& scores) {
  if (led_.empty()) {
    Found found;
    if (!find(place, scores, found))
      return std::nullopt;
    bool better = false;
    if (!found.choices.empty() && !is_better_later(place, scores, found, better))
      return std::nullopt;
    if (found.choices.empty() || better)
      return best(scores);
    led_.assign(found.choices.rbegin(), found.choices.rend());
  }
  const int32_t token = led_.back();
  led_.pop_back();
  return token;
}

int32_t KeywordLookahead::best(const Transducer::Scores& scores) const {
  return static_cast<int32_t>(std::ranges::max_element(scores.logits) - scores.logits.begin());
}

// As parakeet.cpp does.
TransducerPlace KeywordLookahead::after(TransducerPlace place, int32_t token, int duration) const {
  if (token == shape_.blank)
    return {place.frame + std::max(1, duration), 0};
  if (duration > 0)
    return {place.frame + duration, 0};
  const int said = place.said + 1;
  return said < shape_.tokens_per_frame ? TransducerPlace{place.frame, said}
                                        : TransducerPlace{place.frame + 1, 0};
}

bool KeywordLookahead::score(int frame, Transducer::Scores& scores) {
  ++steps_;
  return transducer_.score(frame, scores);
}

void KeywordLookahead::branch(const Path& path, const Transducer::Scores& scores, std::vector<Path>& open,
                              Found& found) {
  const float top = scores.logits[static_cast<size_t>(best(scores))];
  std::vector<std::pair<float, KeywordTrie::Child>> reached;
  for (const auto& child : trie_.children(path.node)) {
    const float credit =
        path.credit + kKeywordBonus - (top - scores.logits[static_cast<size_t>(child.token)]);
    if (credit >= 0) // false for a number that is none
      reached.emplace_back(credit, child);
  }
  const auto kept = reached.begin() + static_cast<std::ptrdiff_t>(std::min(reached.size(), kMaxBranches));
  std::ranges::partial_sort(reached, kept, std::ranges::greater{},
                            [](const auto& each) { return each.first; });
  for (const auto& [credit, child] : std::span(reached.begin(), kept)) {
    Path longer{after(path.place, child.token, scores.duration),
                child.node,
                credit,
                path.memory,
                child.token,
                path.choices};
    longer.choices.push_back(child.token);
    if (trie_.ends(child.node) && (found.choices.empty() || credit > found.credit))
      found = {credit, longer.place, longer.choices};
    if (!trie_.children(child.node).empty())
      open.push_back(std::move(longer));
  }
}

bool KeywordLookahead::find(TransducerPlace place, const Transducer::Scores& scores, Found& found) {
  std::vector<Path> open;
  branch({place, KeywordTrie::kRoot, 0, nullptr, shape_.blank, {}}, scores, open, found);
  if (open.empty())
    return true;
  const auto start = std::make_shared<const Transducer::Memory>(transducer_.memory());
  for (auto& path : open)
    path.memory = start;
  auto recalled = start; // what the model remembers now
  Transducer::Scores heard;
  while (!open.empty() && steps_ < kMaxSteps) {
    auto path = std::move(open.back());
    open.pop_back();
    if (path.place.frame >= shape_.frames)
      continue;
    if (path.memory != recalled)
      transducer_.recall(*path.memory);
    recalled = path.memory;
    if (path.token != shape_.blank) {
      if (!transducer_.say(path.token))
        return false;
      path.memory = std::make_shared<const Transducer::Memory>(transducer_.memory());
      recalled = path.memory;
    }
    if (!score(path.place.frame, heard))
      return false;
    branch(path, heard, open, found);
    if (best(heard) == shape_.blank) {
      path.place = after(path.place, shape_.blank, heard.duration);
      path.token = shape_.blank;
      path.choices.push_back(shape_.blank);
      open.push_back(std::move(path));
    }
  }
  transducer_.recall(*start);
  return true;
}

// Follows the model's own choices to the end of the keyword that was found.
bool KeywordLookahead::is_better_later(TransducerPlace place, Transducer::Scores scores, const Found& found,
                                       bool& better) {
  const auto start = transducer_.memory();
  const int end = std::min(found.end.frame, shape_.frames);
  while (steps_ < kMaxSteps && !better) {
    const int32_t token = best(scores);
    place = after(place, token, scores.duration);
    if (place.frame >= end)
      break;
    Found later;
    if ((token != shape_.blank && !transducer_.say(token)) || !score(place.frame, scores) ||
        !find(place, scores, later))
      return false;
    better = !later.choices.empty() && later.credit > found.credit;
  }
  transducer_.recall(start);
  return true;
}

} // namespace voxgate

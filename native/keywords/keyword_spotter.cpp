#include "keywords/keyword_spotter.h"

#include <algorithm>
#include <map>

namespace voxgate {
namespace {

constexpr size_t kMaxPaths = 128; // of a frame, those with the most credit

struct Path {
  int node = 0;
  bool spoken = false; // false after a blank
  float credit = 0;
  int begin = 0;
  int trace = -1;
};

struct Trace {
  int before = -1;
  SpottedToken token;
};

// The keywords with the most credit together, of the frames before one.
struct Chosen {
  float credit = 0;
  int begin = -1; // of the last keyword, if it ends right here
  int trace = -1;
};

class Spotter {
 public:
  Spotter(const KeywordTrie& trie, const CtcFrames& frames, int first)
      : trie_(trie), frames_(frames), first_(first), count_(static_cast<int>(frames.best.size())),
        chosen_(frames.best.size() + 1) {}

  std::vector<SpottedKeyword> spot() {
    std::vector<Path> paths;
    for (int frame = first_; frame < count_; ++frame) {
      paths = advance(paths, frame);
      choose(paths, frame);
    }
    std::vector<SpottedKeyword> keywords;
    for (int end = count_; end > first_;) {
      const auto& chosen = chosen_[static_cast<size_t>(end)];
      if (chosen.begin < 0) {
        --end;
        continue;
      }
      SpottedKeyword keyword{chosen.begin, {}};
      for (int at = chosen.trace; at >= 0; at = traces_[static_cast<size_t>(at)].before)
        keyword.frames.push_back(traces_[static_cast<size_t>(at)].token);
      std::ranges::reverse(keyword.frames);
      keywords.push_back(std::move(keyword));
      end = chosen.begin;
    }
    return keywords;
  }

 private:
  int32_t best(int frame) const { return frames_.best[static_cast<size_t>(frame)]; }

  bool may_begin(int frame) const {
    if (frame > first_ && best(frame) == best(frame - 1) && best(frame) != frames_.blank)
      return false;
    for (int next = frame; next < count_; ++next)
      if (best(next) != frames_.blank)
        return frames_.begins_word(best(next));
    return true;
  }

  bool may_end(int frame, int32_t token) const {
    return frame + 1 == count_ ||
           (is_apart(frame, token, frame + 1) &&
            (best(frame) == frames_.blank || best(frame) != best(frame + 1) || best(frame) == token));
  }

  // Where the best text is silent, the flank of a neighboring frame's token is no token of a keyword.
  bool is_apart(int frame, int32_t token, int neighbor) const {
    return neighbor < first_ || token == frames_.blank || best(frame) != frames_.blank ||
           best(neighbor) == frames_.blank || best(neighbor) == token;
  }

  std::vector<Path> advance(const std::vector<Path>& paths, int frame) {
    std::map<std::pair<int, bool>, std::pair<Path, SpottedToken>> reached;
    const auto offer = [&](Path path, int32_t token, float below) {
      path.credit -= below;
      if (!(path.credit >= 0))
        return;
      const auto [place, is_new] =
          reached.try_emplace({path.node, path.spoken}, path, SpottedToken{token, below});
      if (!is_new && place->second.first.credit < path.credit)
        place->second = {path, {token, below}};
    };
    for (const auto& path : paths) {
      offer({path.node, false, path.credit, path.begin, path.trace}, frames_.blank,
            frames_.below_best(frame, frames_.blank));
      const int32_t said = trie_.token(path.node);
      if (path.spoken)
        offer(path, said, frames_.below_best(frame, said));
      for (const auto& [token, node] : trie_.children(path.node))
        if (!path.spoken || token != said)
          offer({node, true, path.credit + kKeywordBonus, path.begin, path.trace}, token,
                frames_.below_best(frame, token));
    }
    if (may_begin(frame))
      for (const auto& [token, node] : trie_.children(KeywordTrie::kRoot))
        if (is_apart(frame, token, frame - 1) &&
            (frame == first_ || best(frame - 1) != token)) // else it would be a part of the token before
          offer({node, true, kKeywordBonus, frame, -1}, token, frames_.below_best(frame, token));
    return kept(reached);
  }

  std::vector<Path> kept(const std::map<std::pair<int, bool>, std::pair<Path, SpottedToken>>& reached) {
    std::vector<std::pair<Path, SpottedToken>> all;
    all.reserve(reached.size());
    for (const auto& [key, path] : reached)
      all.push_back(path);
    if (all.size() > kMaxPaths) {
      std::ranges::stable_sort(all, std::ranges::greater{},
                               [](const auto& each) { return each.first.credit; });
      all.resize(kMaxPaths);
    }
    std::vector<Path> paths;
    for (auto& [path, token] : all) {
      traces_.push_back({path.trace, token});
      path.trace = static_cast<int>(traces_.size()) - 1;
      paths.push_back(path);
    }
    return paths;
  }

  void choose(const std::vector<Path>& paths, int frame) {
    auto& chosen = chosen_[static_cast<size_t>(frame) + 1];
    chosen = {chosen_[static_cast<size_t>(frame)].credit, -1, -1};
    for (const auto& path : paths) {
      if (!trie_.ends(path.node) || !may_end(frame, path.spoken ? trie_.token(path.node) : frames_.blank))
        continue;
      const float credit = chosen_[static_cast<size_t>(path.begin)].credit + path.credit;
      if (credit > chosen.credit)
        chosen = {credit, path.begin, path.trace};
    }
  }

  const KeywordTrie& trie_;
  const CtcFrames& frames_;
  int first_, count_;
  std::vector<Trace> traces_;  // at most kMaxPaths for a frame
  std::vector<Chosen> chosen_; // for each number of frames
};

} // namespace

std::vector<SpottedKeyword> spot_keywords(const KeywordTrie& trie, const CtcFrames& frames, int first) {
  return Spotter(trie, frames, first).spot();
}

} // namespace voxgate

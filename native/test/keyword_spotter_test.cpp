#include "harness.h"

#include "keywords/keyword_spotter.h"

#include <algorithm>
#include <map>
#include <random>

using namespace voxgate;
using namespace voxgate::test;

namespace {

using Tokens = std::vector<int32_t>;

constexpr int32_t kBlank = 9;

KeywordTrie trie_of(const std::vector<Tokens>& keywords) {
  KeywordTrie trie;
  for (const auto& tokens : keywords)
    CHECK(trie.add(tokens));
  return trie;
}

} // namespace

namespace {

using Rows = std::vector<std::map<int32_t, float>>; // below the best token; what is missing is far below

constexpr float kFar = 20;

struct Ctc {
  explicit Ctc(Rows given) : rows(std::move(given)) {
    frames.blank = kBlank;
    for (const auto& row : rows)
      frames.best.push_back(
          std::ranges::min_element(row, {}, [](const auto& each) { return each.second; })->first);
    frames.below_best = [this](int frame, int32_t token) {
      const auto& row = rows[static_cast<size_t>(frame)];
      const auto found = row.find(token);
      return found != row.end() ? found->second : kFar;
    };
    frames.begins_word = [](int32_t token) { return token < 5; };
  }
  Ctc(const Ctc&) = delete;
  Ctc& operator=(const Ctc&) = delete;

  // The text with keywords, collapsed as CTC does.
  Tokens read(const KeywordTrie& trie, int first = 0) {
    auto best = frames.best;
    for (const auto& keyword : spot_keywords(trie, frames, first)) {
      size_t frame = static_cast<size_t>(keyword.begin);
      for (const auto& [token, below] : keyword.frames) {
        CHECK(below == frames.below_best(static_cast<int>(frame), token));
        best.at(frame++) = token;
      }
    }
    Tokens tokens;
    int32_t before = kBlank;
    for (const int32_t token : best)
      if (std::exchange(before, token) != token && token != kBlank)
        tokens.push_back(token);
    return tokens;
  }

  Rows rows;
  CtcFrames frames;
};

const std::map<int32_t, float> kSilence{{kBlank, 0}};

} // namespace

TEST("keywords: a network with CTC says a keyword whose tokens are within the bonus") {
  Ctc heard(
      {kSilence, {{1, 0}, {3, 1.4F}}, kSilence, {{6, 0}, {7, 1.4F}}, {{6, 0}, {kBlank, 0.1F}}, kSilence});
  CHECK((heard.read({}) == Tokens{1, 6}));
  CHECK((heard.read(trie_of({{3, 7}})) == Tokens{3, 7}));
  CHECK((heard.read(trie_of({{3}})) == Tokens{3, 6}));
  CHECK((heard.read(trie_of({{3, 6}, {3, 7}})) == Tokens{3, 6})); // which costs less
  CHECK((heard.read(trie_of({{3, 7}}), 2) == Tokens{1, 6}));      // frames before are no speech
  Ctc twice({{{1, 0}, {3, 0.5F}}, {{kBlank, 0}}, {{3, 0}}});
  CHECK((twice.read(trie_of({{3, 3}})) == Tokens{3, 3}));
  Ctc held({{{1, 0}, {3, 0.5F}}, {{1, 0}, {3, 0.5F}}});
  CHECK((held.read(trie_of({{3, 3}})) == Tokens{1})); // twice needs a blank between
  CHECK((held.read(trie_of({{3}})) == Tokens{3}));    // and no frame of the 1 is left
}

TEST("keywords: a network with CTC says no keyword that is not said, nor the beginning of one") {
  const std::map<int32_t, float> near{{1, 0}, {3, 0.1F}};
  Ctc heard({near, kSilence, {{6, 0}, {7, 2.95F}}, kSilence});
  CHECK((heard.read(trie_of({{3, 7}})) == Tokens{1, 6}));
  CHECK((heard.read(trie_of({{3, 8}, {3, 7, 8}, {8, 3}})) == Tokens{1, 6}));
  CHECK((heard.read(trie_of({{1, 6}, {6}})) == Tokens{1, 6}));
  Ctc far({{{1, 0}, {3, 1.6F}}, {{7, 0}}});
  CHECK((far.read(trie_of({{3, 7}})) == Tokens{1, 7}));
}

TEST("keywords: a network with CTC keeps the other words whole") {
  // 6 goes on with the word that 1 began, so no keyword may begin there, or in the silence before it.
  Ctc word({{{1, 0}}, {{kBlank, 0}, {3, 0.1F}}, {{6, 0}, {3, 0.1F}}, kSilence});
  CHECK((word.read(trie_of({{3}})) == Tokens{1, 6}));
  const std::map<int32_t, float> near{{kBlank, 0}, {3, 0.1F}};
  Ctc other({{{1, 0}}, kSilence, near, kSilence, {{2, 0}}, kSilence});
  CHECK((other.read(trie_of({{3}})) == Tokens{1, 3, 2}));
  // Beside another word it may be a part of its sound.
  for (const Rows& rows :
       {Rows{{{1, 0}}, near, kSilence, {{2, 0}}}, Rows{{{1, 0}}, kSilence, near, {{2, 0}}}}) {
    Ctc flank(rows);
    CHECK((flank.read(trie_of({{3}})) == Tokens{1, 2}));
  }
}

TEST("keywords: of many paths in a network with CTC the best 128 are followed") {
  std::map<int32_t, float> crowd{{1, 0}};
  std::vector<Tokens> keywords;
  for (int32_t i = 0; i < 200; ++i) {
    crowd[1000 + i] = 0.005F * static_cast<float>(i + 1);
    keywords.push_back({1000 + i, 2000 + i});
  }
  for (const int32_t i : {127, 128}) {
    Ctc heard({crowd, {{kBlank, 0}, {2000 + i, 0.1F}}});
    CHECK((heard.read(trie_of(keywords)) == (i == 127 ? Tokens{1127, 2127} : Tokens{1})));
  }
}

TEST("keywords: of keywords that overlap those with the most credit together are said") {
  Ctc heard({{{1, 0}, {3, 0.2F}}, kSilence, {{2, 0}, {4, 0.3F}}, kSilence});
  CHECK((heard.read(trie_of({{3, 4}, {3}})) == Tokens{3, 4}));
  CHECK((heard.read(trie_of({{3}, {4}})) == Tokens{3, 4}));
  CHECK((heard.read(trie_of({{3}, {2}, {3, 4}})) == Tokens{3, 2}));
}

namespace {

// The most credit of any way to say the keyword, by trying all of them.
float best_credit(Ctc& heard, const Tokens& keyword, int frame, size_t said, bool spoken, float credit) {
  float best = said == keyword.size() ? credit : -1;
  if (frame == static_cast<int>(heard.rows.size()))
    return best;
  const auto go = [&](int32_t token, size_t now, bool speaking, float bonus) {
    const float left = credit + bonus - heard.frames.below_best(frame, token);
    if (left >= 0)
      best = std::max(best, best_credit(heard, keyword, frame + 1, now, speaking, left));
  };
  if (said > 0) {
    go(kBlank, said, false, 0);
    if (spoken)
      go(keyword[said - 1], said, true, 0);
  }
  if (said < keyword.size() && !(spoken && keyword[said] == keyword[said - 1]))
    go(keyword[said], said + 1, true, kKeywordBonus);
  return best;
}

} // namespace

TEST("keywords: a network with CTC finds what trying every path finds") {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> below(0, 3);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    Rows rows;
    for (int frame = 0; frame < 7; ++frame) {
      rows.push_back(kSilence); // as the best token, so that a keyword may begin and end anywhere
      for (const int32_t token : {1, 2, 3})
        rows.back()[token] = 0.01F + below(random);
    }
    Ctc heard(rows);
    const Tokens keyword{1, static_cast<int32_t>(1 + random() % 3), static_cast<int32_t>(1 + random() % 3)};
    float most = -1;
    for (int begin = 0; begin < 7; ++begin)
      most = std::max(most, best_credit(heard, keyword, begin, 0, false, 0));
    const auto spotted = spot_keywords(trie_of({keyword}), heard.frames, 0);
    CHECK(spotted.empty() == (most <= 0));
    float total = 0;
    for (const auto& each : spotted) {
      total += kKeywordBonus * static_cast<float>(keyword.size());
      for (const auto& [token, lost] : each.frames)
        total -= lost;
    }
    CHECK(spotted.empty() || total > most - 1e-4F);
    CHECK(spotted.size() != 1 || total < most + 1e-4F);
    found += spotted.empty() ? 0 : 1;
  }
  std::cout << "     " << found << " of 2000\n";
  CHECK(found > 100 && found < 1990);
}

#include "harness.h"

#include "keywords/keyword_lookahead.h"
#include "keywords/speller.h"

#include <cmath>
#include <map>
#include <random>

using namespace voxgate;
using namespace voxgate::test;

namespace {

using Tokens = std::vector<int32_t>;

KeywordTrie trie_of(const std::vector<Tokens>& keywords) {
  KeywordTrie trie;
  for (const auto& tokens : keywords)
    CHECK(trie.add(tokens));
  return trie;
}

Speller speller(const std::vector<std::string>& pieces) {
  return {pieces, [](size_t id) { return id != 0; }};
}

} // namespace

TEST("keywords: a tree shares prefixes, ends where keywords end, and is bounded") {
  auto trie = trie_of({{5, 6}, {5, 6, 7}, {4}});
  const auto first = trie.children(KeywordTrie::kRoot);
  CHECK(first.size() == 2 && first[0].token == 4 && first[1].token == 5);
  CHECK(trie.ends(first[0].node) && !trie.ends(first[1].node));
  const auto next = trie.children(first[1].node);
  CHECK(next.size() == 1 && trie.ends(next[0].node) && trie.token(next[0].node) == 6);
  CHECK(trie.children(next[0].node).size() == 1);
  CHECK(!trie.add({}));
  int added = 0;
  for (int32_t i = 0; i < 40000; ++i)
    added += trie.add(Tokens{i, i + 1}) ? 1 : 0;
  CHECK(added > 8000 && added < 8200);
  CHECK(trie.add(Tokens{4}) == false); // full: it would not even look
}

TEST("keywords: words are spelled by merging, by the longest piece, and by single characters") {
  const auto words = speller({"<unk>", "\xE2\x96\x81", "a", "b", "c", "bc", "ab",
                              "\xE2\x96\x81"
                              "ab",
                              "abc", "你", "好", "你好"});
  // b and c are merged before a and b are, because their piece comes first; the longest piece goes from the
  // left.
  CHECK((words.spellings("abc") == std::vector<Tokens>{{1, 8}, {7, 4}}));
  CHECK((words.spellings("a b") == std::vector<Tokens>{{1, 2, 1, 3}}));
  CHECK((words.spellings("你好") == std::vector<Tokens>{{1, 11}, {1, 9, 10}, {11}, {9, 10}}));
  CHECK((words.spellings("ab你") == std::vector<Tokens>{{7, 9}}));
}

TEST("keywords: what the vocabulary cannot spell is left out, and broken text does no harm") {
  auto words = speller({"<unk>", "\xE2\x96\x81", "a"});
  CHECK(words.spellings("ab").empty());
  CHECK(words.spellings("<unk>").empty());
  for (const std::string broken : {"", "\x80", "a\xE4", "\xF0\x9F", "\xFF\xFF"})
    CHECK(words.spellings(broken).size() == (broken.empty() ? 1U : 0U));
  CHECK(!words.spell({"b", "a"}).empty());
  CHECK(words.spell({"b"}).empty() && words.spell({}).empty());
}

namespace {

constexpr int32_t kBlank = 9;

// Hears by what was said last: the row of its place, or the row for what was said there.
class Scripted final : public Transducer {
 public:
  explicit Scripted(int frames) : frames_(frames) {}

  // After `said`, at `frame`, the logits are 0, but these.
  void set(int frame, int32_t said, std::map<int32_t, float> logits, int duration = 1) {
    rows_[{frame, said}] = {std::move(logits), duration};
  }

  bool score(int frame, Scores& scores) override {
    ++calls;
    CHECK(frame < frames_);
    if (fails_after >= 0 && calls > fails_after)
      return false;
    scores.logits.assign(kBlank + 1, -20);
    scores.duration = 1;
    const auto row = rows_.find({frame, said_});
    if (row == rows_.end()) {
      scores.logits[kBlank] = 0;
    } else {
      scores.duration = row->second.second;
      for (const auto& [token, logit] : row->second.first)
        scores.logits[static_cast<size_t>(token)] = logit;
    }
    return true;
  }
  bool say(int32_t token) override {
    said_ = token;
    return true;
  }
  Memory memory() override { return {static_cast<float>(said_)}; }
  void recall(const Memory& memory) override { said_ = static_cast<int32_t>(memory[0]); }

  // As parakeet.cpp decodes.
  Tokens decode(const KeywordTrie& trie) {
    said_ = kBlank;
    calls = 0;
    KeywordLookahead lookahead(trie, *this, {frames_, kBlank, 3});
    Tokens tokens;
    Scores scores;
    for (int frame = 0, said = 0; frame < frames_;) {
      if (!score(frame, scores))
        return {-1};
      const auto before = said_;
      const auto chosen = lookahead.choose({frame, said}, scores);
      if (!chosen)
        return {-1};
      CHECK(said_ == before); // the search leaves nothing behind
      if (*chosen == kBlank) {
        frame += std::max(1, scores.duration);
        said = 0;
        continue;
      }
      tokens.push_back(*chosen);
      CHECK(tokens.size() < 100);
      say(*chosen);
      if (scores.duration > 0 || ++said >= 3) {
        frame += std::max(1, scores.duration);
        said = 0;
      }
    }
    return tokens;
  }

  int calls = 0;
  int fails_after = -1;

 private:
  int frames_;
  int32_t said_ = kBlank;
  std::map<std::pair<int, int32_t>, std::pair<std::map<int32_t, float>, int>> rows_;
};

// Says 1 2, and nearly 3 4 instead.
Scripted rivals(float below_first, float below_second) {
  Scripted model(4);
  model.set(0, kBlank, {{1, 0}, {3, -below_first}});
  model.set(1, 1, {{2, 0}});
  model.set(1, 3, {{kBlank, 0}, {5, -1}});
  model.set(2, 3, {{4, -below_second}, {5, 0}});
  return model;
}

} // namespace

TEST("keywords: a transducer says a keyword whose tokens are within the bonus") {
  auto model = rivals(1.4F, 1.4F);
  CHECK((model.decode({}) == Tokens{1, 2}));
  CHECK((model.decode(trie_of({{3, 4}})) == Tokens{3, 4}));
  CHECK((model.decode(trie_of({{3}})) == Tokens{3, 5}));
  // What the first token has left over pays for the second one.
  CHECK((rivals(0.5F, 2.4F).decode(trie_of({{3, 4}})) == Tokens{3, 4}));
}

TEST("keywords: a transducer says no keyword that is not said, nor the beginning of one") {
  CHECK((rivals(1.6F, 0).decode(trie_of({{3, 4}})) == Tokens{1, 2}));
  CHECK((rivals(0.5F, 2.6F).decode(trie_of({{3, 4}})) == Tokens{1, 2}));
  auto model = rivals(0.1F, 0);
  CHECK((model.decode(trie_of({{3, 4, 6}})) == Tokens{1, 2})); // the end is missing
  CHECK((model.decode(trie_of({{3, 6}})) == Tokens{1, 2}));
  CHECK((model.decode(trie_of({{6, 3, 4}})) == Tokens{1, 2}));
  CHECK((model.decode(trie_of({{1, 2}, {2}})) == Tokens{1, 2})); // it is said anyway
}

TEST("keywords: the keyword that fits best is said where it fits best") {
  Scripted model(6);
  model.set(0, kBlank, {{kBlank, 0}, {3, -1.2F}});
  model.set(1, kBlank, {{1, 0}, {3, -1}});
  model.set(2, 1, {{3, 0}, {6, -0.5F}});
  for (const int32_t said : {1, 3})
    model.set(3, said, {{4, 0}, {2, -0.2F}});
  // Everywhere else is silence. The keyword could begin at any of the first three frames.
  CHECK((model.decode({}) == Tokens{1, 3, 4}));
  CHECK((model.decode(trie_of({{3, 4}})) == Tokens{1, 3, 4}));
  CHECK((model.decode(trie_of({{3}, {3, 2}, {6, 2}})) == Tokens{1, 3, 2}));
}

TEST("keywords: the search for one stops at its limit and at a failure") {
  // Any token may follow any other, for ever.
  Scripted model(4000);
  for (int frame = 0; frame < 4000; ++frame)
    for (int32_t said = 0; said <= kBlank; ++said)
      model.set(frame, said, {{kBlank, 0}, {1, -0.1F}, {2, -0.1F}, {3, -0.1F}, {4, -0.1F}, {5, -0.1F}});
  std::vector<Tokens> keywords;
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    Tokens tokens;
    for (int n = 0; n < 60; ++n)
      tokens.push_back(static_cast<int32_t>(1 + random() % 5));
    tokens.push_back(8); // which is never said
    keywords.push_back(tokens);
  }
  CHECK(model.decode(trie_of(keywords)).empty());
  CHECK(model.calls <= 4000 + KeywordLookahead::kMaxSteps);
  auto stopped = rivals(0.1F, 0);
  for (stopped.fails_after = 0; stopped.fails_after < 3; ++stopped.fails_after)
    CHECK((stopped.decode(trie_of({{3, 4}})) == Tokens{-1}));
}

TEST("keywords: a transducer follows the four best of the tokens that may come next") {
  for (const int32_t last : {4, 5}) {
    Scripted model(3);
    model.set(0, kBlank, {{0, 0}, {1, -0.1F}, {2, -0.2F}, {3, -0.3F}, {4, -0.4F}, {5, -0.5F}});
    model.set(1, last, {{8, 0}});
    const auto trie = trie_of({{1, 7}, {2, 7}, {3, 7}, {4, 8}, {5, 8}});
    CHECK((model.decode(trie) == (last == 4 ? Tokens{4, 8} : Tokens{0})));
  }
}

TEST("keywords: whatever a transducer hears, its text is its own, or has a keyword") {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> loudness(-4, 0);
  int changed = 0;
  for (int round = 0; round < 3000; ++round) {
    Scripted model(8);
    for (int frame = 0; frame < 8; ++frame)
      for (int32_t said = 0; said <= kBlank; ++said) {
        std::map<int32_t, float> logits;
        for (int32_t token = 0; token <= kBlank; ++token)
          logits[token] = loudness(random) * 3;
        model.set(frame, said, logits, static_cast<int>(random() % 3));
      }
    const Tokens keyword{1, 2, static_cast<int32_t>(random() % 9)};
    const auto plain = model.decode({});
    const auto led = model.decode(trie_of({keyword}));
    const bool has_keyword = std::search(led.begin(), led.end(), keyword.begin(), keyword.end()) != led.end();
    CHECK(led == plain || has_keyword);
    changed += led != plain ? 1 : 0;
  }
  std::cout << "     " << changed << " of 3000 texts have a keyword\n";
  CHECK(changed > 10 && changed < 1500);
}

#include "harness.h"

#include "backends/thread_budget.h"

#include <deque>
#include <thread>

using namespace voxgate;
using namespace voxgate::test;

namespace {

using Turns = std::deque<ThreadBudget::Turn>;

std::vector<int> shares_of(int threads, int lanes) {
  ThreadBudget budget(threads);
  Turns turns;
  for (int i = 0; i < lanes; ++i)
    turns.emplace_back(budget);
  std::vector<int> shares;
  for (const auto& turn : turns)
    shares.push_back(turn.threads());
  return shares;
}

} // namespace

TEST("thread budget: lanes that compute share all threads, and the first ones get what is left over") {
  using Shares = std::vector<int>;
  CHECK(shares_of(6, 1) == (Shares{6}));
  CHECK(shares_of(6, 2) == (Shares{3, 3}));
  CHECK(shares_of(6, 4) == (Shares{2, 2, 1, 1}));
  CHECK(shares_of(7, 4) == (Shares{2, 2, 2, 1}));
  CHECK(shares_of(4, 4) == (Shares{1, 1, 1, 1}));
}

TEST("thread budget: a lane always has a thread, however many there are") {
  CHECK(shares_of(0, 1) == std::vector<int>{1});
  CHECK(shares_of(2, 3) == std::vector<int>(3, 1));
  CHECK(shares_of(2, 100) == std::vector<int>(100, 1));
}

TEST("thread budget: the share of a lane that ends goes to the others") {
  ThreadBudget budget(5);
  const ThreadBudget::Turn first(budget);
  {
    const ThreadBudget::Turn second(budget);
    const ThreadBudget::Turn third(budget);
    CHECK(first.threads() == 2 && second.threads() == 2 && third.threads() == 1);
  }
  CHECK(first.threads() == 5);
  const ThreadBudget::Turn next(budget);
  CHECK(first.threads() == 3 && next.threads() == 2);
}

TEST("thread budget: lanes that start and end at the same time leave nothing taken") {
  ThreadBudget budget(5);
  {
    std::vector<std::jthread> lanes;
    for (int lane = 0; lane < 4; ++lane)
      lanes.emplace_back([&budget] {
        for (int i = 0; i < 20000; ++i)
          static_cast<void>(ThreadBudget::Turn(budget).threads());
      });
  }
  CHECK(ThreadBudget::Turn(budget).threads() == 5);
}

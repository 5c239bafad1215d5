#include "harness.h"

#include "backends/whisper/whisper_segments.h"

#include <utility>
#include <vector>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int32_t kTime = 7; // the token of the time 0; those of 20, 40 ... ms follow

} // namespace

TEST("whisper segments: a text is cut where two times stand side by side") {
  const auto at = [](int position) { return kTime + position; };
  using Pieces = std::vector<TimedPiece>;
  // One segment, whose last time ends the window.
  CHECK((cut_at_times(std::vector{at(0), 1, 2, at(90)}, kTime, 100) ==
         TimedPieces{Pieces{{0, 4, 0, 90}}, 100}));
  // Two segments.
  CHECK((cut_at_times(std::vector{at(0), 1, at(40), at(50), 2, at(90)}, kTime, 100) ==
         TimedPieces{Pieces{{0, 3, 0, 40}, {3, 6, 50, 90}}, 100}));
  // The text goes on behind the last pair, in the next window.
  CHECK((cut_at_times(std::vector{at(2), 1, at(40), at(40)}, kTime, 100) ==
         TimedPieces{Pieces{{0, 3, 2, 40}}, 40}));
  CHECK((cut_at_times(std::vector{at(0), 1, at(40), at(42), 2}, kTime, 100) ==
         TimedPieces{Pieces{{0, 3, 0, 40}}, 40}));
  // Without an end, and without times.
  CHECK((cut_at_times(std::vector{at(3), 1, 2}, kTime, 100) == TimedPieces{Pieces{{0, 3, 3, 100}}, 100}));
  CHECK((cut_at_times(std::vector{1, 2}, kTime, 100) == TimedPieces{Pieces{{0, 2, 0, 100}}, 100}));
  CHECK((cut_at_times(std::vector<int32_t>{}, kTime, 100) == TimedPieces{{}, 100}));
}

TEST("whisper segments: windows follow each other to the end of the audio") {
  std::vector<std::pair<int, int>> windows;
  for_each_window(3050, [&windows](int start, int length) {
    windows.emplace_back(start, length);
    return start == 0 ? 1000 : length;
  });
  CHECK((windows == std::vector<std::pair<int, int>>{{0, 3000}, {1000, 2050}}));
  int short_ones = 0;
  for_each_window(10, [&short_ones](int, int length) { return ++short_ones, length; });
  CHECK(short_ones == 0);
}

TEST("whisper segments: a text of more windows than a chunk may have is incomplete") {
  int windows = 0;
  const auto decode = [&windows](int, int) { return ++windows, 0; };
  CHECK(failure_of([&] { for_each_window(3000, decode); }) == StatusCode::incomplete);
  CHECK(windows == 16);
}

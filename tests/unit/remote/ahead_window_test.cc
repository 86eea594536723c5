// SPDX-License-Identifier: Apache-2.0
// Tests that the number of requests in flight follows the round trip.
#include "remote/ahead_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace varve::remote {
namespace {

// Simulates a store that answers after a round trip, and delivers at most `rate` bytes in a second.
std::size_t window_after(double round_trip, double rate) {
  constexpr double kBytes = 4 << 20;
  AheadWindow window;
  AheadWindow::Clock::time_point now{};
  for (int i = 0; i < 3000; ++i) {
    const double each = std::max(kBytes / rate, round_trip / static_cast<double>(window.size()));
    now += std::chrono::duration_cast<AheadWindow::Clock::duration>(
        std::chrono::duration<double>(each));
    window.on_end(static_cast<std::uint64_t>(kBytes), true, now);
  }
  return window.size();
}

TEST(AheadWindow, GrowsWithTheRoundTrip) {
  EXPECT_EQ(window_after(0.001, 1e9), AheadWindow::kLeast);
  EXPECT_GE(window_after(0.1, 1e9), 32U);
  EXPECT_EQ(window_after(1, 1e9), AheadWindow::kMost);
  EXPECT_EQ(window_after(0.1, 1e7), AheadWindow::kLeast) << "a slow line needs few requests";
}

TEST(AheadWindow, DoublesAtOnceIfManyWait) {
  AheadWindow window;
  window.on_waiting(AheadWindow::kLeast - 1);
  EXPECT_EQ(window.size(), AheadWindow::kLeast);
  window.on_waiting(AheadWindow::kLeast);
  EXPECT_EQ(window.size(), 2 * AheadWindow::kLeast);
  window.on_waiting(1000);
  EXPECT_EQ(window.size(), 2 * AheadWindow::kLeast);
}

TEST(AheadWindow, RequestsThatDoNotFillItTeachNothing) {
  AheadWindow window;
  AheadWindow::Clock::time_point now{};
  for (int i = 0; i < 3000; ++i) {
    now += std::chrono::milliseconds(1);
    window.on_end(4 << 20, i % 5 != 0, now);
  }
  EXPECT_EQ(window.size(), AheadWindow::kLeast);
}

}  // namespace
}  // namespace varve::remote

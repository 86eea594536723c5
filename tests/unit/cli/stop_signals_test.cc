// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

#include <gtest/gtest.h>

#include <chrono>

namespace varve::cli {
namespace {

using Meaning = StopSignals::Meaning;
using std::chrono::milliseconds;

TEST(StopSignals, OneRequestMayBeTwoSignals) {
  const std::chrono::steady_clock::time_point start{};
  StopSignals signals;
  EXPECT_FALSE(signals.any());
  EXPECT_EQ(signals.note(start), Meaning::kStop);
  EXPECT_TRUE(signals.any());
  EXPECT_EQ(signals.note(start), Meaning::kEcho);
  EXPECT_EQ(signals.note(start + milliseconds(499)), Meaning::kEcho);
}

TEST(StopSignals, LaterRequestEndsTheProcess) {
  const std::chrono::steady_clock::time_point start{};
  StopSignals signals;
  EXPECT_EQ(signals.note(start), Meaning::kStop);
  EXPECT_EQ(signals.note(start + milliseconds(500)), Meaning::kEnd);
  EXPECT_EQ(signals.note(start + milliseconds(501)), Meaning::kEnd);
}

}  // namespace
}  // namespace varve::cli

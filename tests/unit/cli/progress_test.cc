// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gtest/gtest.h>

namespace varve::cli {
namespace {

constexpr ProgressState kHalf{.bytes_done = 10 << 20, .bytes_total = 20 << 20, .files = 3};

TEST(ProgressText, SaysNothingOfTheRemainingTimeInTheFirstTwoSeconds) {
  EXPECT_EQ(progress_text("restoring", kHalf, 1),
            "restoring: 10.0 MiB of 20.0 MiB (50 %), 3 files, 10.0 MiB/s, 0:01");
  EXPECT_EQ(progress_text("restoring", kHalf, 1.99).find("left"), std::string::npos);
}

TEST(ProgressText, EstimatesTheRemainingTimeAfterTwoSeconds) {
  EXPECT_EQ(progress_text("restoring", kHalf, 2),
            "restoring: 10.0 MiB of 20.0 MiB (50 %), 3 files, 5.0 MiB/s, 0:02, 0:02 left");
}

TEST(ProgressText, OmitsTheUnknown) {
  EXPECT_EQ(progress_text("storing", {.bytes_done = 2048}, 4), "storing: 2.0 KiB, 512 B/s, 0:04");
  EXPECT_EQ(progress_text("checking", {.bytes_total = 2048}, 4),
            "checking: 0 B of 2.0 KiB (0 %), 0 B/s, 0:04");
}

TEST(ProgressText, SurvivesATotalThatIsTooSmall) {
  EXPECT_EQ(progress_text("checking", {.bytes_done = 30, .bytes_total = 20}, 3),
            "checking: 30 B of 20 B (100 %), 10 B/s, 0:03");
}

}  // namespace
}  // namespace varve::cli

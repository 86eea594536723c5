// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_status.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "varve/copy_name.h"

namespace varve::cli {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::int64_t kHour = 3600;

RepositoryStatus sound() {
  SeriesStatus series;
  series.name = "home";
  series.versions = 3;
  series.newest = VersionInfo();
  series.newest->name = "monday";
  series.newest->sealed_at = {kNow - 5 * kHour, 0};
  RepositoryStatus status;
  status.series = {series};
  status.checks = {{CheckDepth::kChunks, kNow - 24 * kHour, 0}};
  status.space = {.block_bytes = 4096, .blocks = 1000, .blocks_available = 500};
  status.now = {kNow, 0};
  return status;
}

StatusLimits strict() { return {.age_s = 26 * kHour, .check_age_s = 48 * kHour}; }

/// Returns the health of the only concern, which has these words.
Health only_concern(const RepositoryStatus& status, const StatusLimits& limits,
                    const std::string& words) {
  const auto concerns = find_concerns(status, limits);
  EXPECT_EQ(concerns.size(), 1U);
  if (concerns.size() != 1) return Health::kOk;
  EXPECT_NE(concerns.front().text.find(words), std::string::npos) << concerns.front().text;
  return concerns.front().health;
}

TEST(RepositoryStatus, ASoundRepositoryHasNoConcern) {
  EXPECT_TRUE(find_concerns(sound(), strict()).empty());
  EXPECT_TRUE(find_concerns(sound(), {}).empty());
}

TEST(RepositoryStatus, AnOldOrMissingVersionIsCriticalOnlyWithALimit) {
  auto status = sound();
  status.series[0].newest->sealed_at.seconds = kNow - 26 * kHour;
  EXPECT_TRUE(find_concerns(status, strict()).empty());
  --status.series[0].newest->sealed_at.seconds;
  EXPECT_EQ(only_concern(status, strict(), "home is 26 h old"), Health::kCritical);
  EXPECT_TRUE(find_concerns(status, {}).empty());
  status.series[0].newest.reset();
  EXPECT_EQ(only_concern(status, strict(), "no sealed version"), Health::kCritical);
}

TEST(RepositoryStatus, ADamagedOrUncheckedObjectStoreIsAConcern) {
  auto status = sound();
  status.replication.emplace();
  status.replication->place = "s3://b/p";
  EXPECT_EQ(only_concern(status, strict(), "no check has compared the objects in s3://b/p"),
            Health::kWarning);
  EXPECT_TRUE(find_concerns(status, {}).empty());
  status.replication->checks = {{CheckDepth::kStructure, kNow - 24 * kHour, 0}};
  EXPECT_TRUE(find_concerns(status, strict()).empty());
  status.replication->checks[0].ended_at = kNow - 50 * kHour;
  EXPECT_EQ(only_concern(status, strict(), "s3://b/p was 2 days ago"), Health::kWarning);
  status.replication->checks[0].damages = 2;
  EXPECT_EQ(only_concern(status, {}, "found 2 damaged objects in s3://b/p; run `varve repair`, "),
            Health::kCritical);
  status.replication->checks[0].depth = CheckDepth::kData;
  EXPECT_EQ(only_concern(status, {}, "`varve repair --read-store`"), Health::kCritical);
  status.replication->reads_only = true;
  EXPECT_EQ(only_concern(status, {}, "in the folder that writes"), Health::kCritical);
}

TEST(RepositoryStatus, ARefusedStoreIsCritical) {
  auto status = sound();
  status.series[0].refused = RefusedStore{RefusalReason::kEmpty, {kNow, 0}};
  EXPECT_EQ(only_concern(status, {}, "into home was refused"), Health::kCritical);
  EXPECT_EQ(only_concern(status, {}, "was empty"), Health::kCritical);
  status.series[0].refused->reason = RefusalReason::kShrunk;
  EXPECT_EQ(only_concern(status, strict(), "lost most"), Health::kCritical);
}

TEST(RepositoryStatus, AVersionThatStaysOpenIsAWarning) {
  auto status = sound();
  VersionInfo open;
  open.name = "tuesday.partial";
  open.opened_at = {kNow - 30 * kHour, 0};
  status.series[0].open = {open};
  EXPECT_EQ(only_concern(status, strict(),
                         "home/tuesday.partial has been open for 30 h; run the interrupted "
                         "command again, seal it as it is"),
            Health::kWarning);
  VersionOrigin origin;
  origin.repository = std::string(32, 'a');
  origin.number = VersionNumber{3};
  status.series[0].open[0].name = receiving_name(origin);
  EXPECT_EQ(only_concern(status, strict(), "run `varve copy` again"), Health::kWarning);
}

TEST(RepositoryStatus, AVersionFromTheFutureIsAWarning) {
  auto status = sound();
  status.series[0].newest->sealed_at.seconds = kNow + 2 * kHour;
  EXPECT_EQ(only_concern(status, strict(), "check the clock"), Health::kWarning);
  status.series[0].newest->sealed_at.seconds = std::numeric_limits<std::int64_t>::min();
  status.now.seconds = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(seconds_since(status.series[0].newest->sealed_at, status.now), 0U);
}

TEST(RepositoryStatus, DamageOfAnyCheckIsCritical) {
  auto status = sound();
  status.checks.insert(status.checks.begin(), {CheckDepth::kData, kNow - 90 * kHour, 2});
  EXPECT_EQ(only_concern(status, strict(), "2 damaged places"), Health::kCritical);
}

TEST(RepositoryStatus, AnOldCheckOfAllDataIsAWarning) {
  auto status = sound();
  status.checks = {{CheckDepth::kStructure, kNow, 0}, {CheckDepth::kData, kNow - 49 * kHour, 0}};
  EXPECT_EQ(only_concern(status, strict(), "2 days ago"), Health::kWarning);
  status.checks.pop_back();
  EXPECT_EQ(only_concern(status, strict(), "no check has read all data"), Health::kWarning);
}

TEST(RepositoryStatus, AFullDiskIsAWarningThenCritical) {
  auto status = sound();
  status.space.blocks_available = 49;
  EXPECT_EQ(only_concern(status, strict(), "prune"), Health::kWarning);
  status.space.blocks_available = 9;
  EXPECT_EQ(only_concern(status, strict(), "prune"), Health::kCritical);
  status.space.blocks_available = 500;
  auto limits = strict();
  limits.free_bytes = 501 * 4096;
  EXPECT_EQ(only_concern(status, limits, "prune"), Health::kWarning);
}

TEST(RepositoryStatus, LargeArrangingDebtIsAWarning) {
  auto status = sound();
  status.series[0].debt.active_bytes = 200 << 20;
  status.series[0].debt.dead_bytes = 50 << 20;
  status.series[0].debt.departing_bytes = 50 << 20;
  EXPECT_TRUE(find_concerns(status, strict()).empty());
  ++status.series[0].debt.dead_bytes;
  EXPECT_EQ(only_concern(status, strict(), "varve arrange"), Health::kWarning);
}

TEST(RepositoryStatus, TheGravestConcernComesFirst) {
  auto status = sound();
  status.series[0].newest->sealed_at.seconds = kNow - 100 * kHour;
  status.checks.clear();
  const auto concerns = find_concerns(status, strict());
  ASSERT_EQ(concerns.size(), 2U);
  EXPECT_EQ(concerns[0].health, Health::kCritical);
  EXPECT_EQ(concerns[1].health, Health::kWarning);
}

TEST(RepositoryStatus, AgesHaveTheLargestUnitThatFitsTwice) {
  EXPECT_EQ(age_text(0), "0 s");
  EXPECT_EQ(age_text(119), "119 s");
  EXPECT_EQ(age_text(120), "2 min");
  EXPECT_EQ(age_text(26 * 3600), "26 h");
  EXPECT_EQ(age_text(48 * 3600), "2 days");
}

TEST(RepositoryStatus, ChangesThatTheStoreLacksAreWarnings) {
  auto status = sound();
  status.replication = ReplicationInfo{.place = "s3://place"};
  status.changes.settings = true;
  EXPECT_EQ(only_concern(status, {}, "settings are not in s3://place yet"), Health::kWarning);
  status.changes = {.deleted_versions = 2};
  EXPECT_EQ(only_concern(status, {}, "2 deleted versions are still in"), Health::kWarning);
  status.changes = {.keys = true};
  EXPECT_EQ(only_concern(status, {}, "the former keys open"), Health::kWarning);
  status.replication->fenced = "another folder writes";
  EXPECT_EQ(find_concerns(status, {}).back().text.find("`varve wait`"), std::string::npos);
}

}  // namespace
}  // namespace varve::cli

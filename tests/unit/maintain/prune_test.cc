// SPDX-License-Identifier: Apache-2.0
#include "varve/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <string>
#include <utility>

namespace varve {
namespace {

using Rule = std::uint32_t KeepRules::*;

KeepRules keep(std::initializer_list<std::pair<Rule, std::uint32_t>> counts) {
  KeepRules rules;
  for (const auto& [rule, count] : counts) rules.*rule = count;
  return rules;
}

KeepRules keep_within(std::int64_t seconds) {
  KeepRules rules;
  rules.within_seconds = static_cast<std::uint64_t>(seconds);
  return rules;
}

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kStart = 1767225600;  // 2026-01-01 00:00 UTC, a Thursday.

class Prune : public testing::Test {
 protected:
  Prune() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  void add(std::int64_t sealed_at, VersionState state = VersionState::kSealed,
           std::uint64_t entries = 1) {
    VersionInfo info;
    info.number = static_cast<VersionNumber>(versions_.size() + 1);
    info.state = state;
    info.sealed_at = {sealed_at, 0};
    info.entries = entries;
    versions_.push_back(info);
  }
  void add_empty(std::int64_t sealed_at) { add(sealed_at, VersionState::kSealed, 0); }
  std::vector<PruneDecision> decide(const KeepRules& rules) {
    return decide_prune(versions_, locked_, rules, {now_, 0});
  }
  /// Returns the numbers of the kept versions, newest first.
  std::string kept(const KeepRules& rules) {
    std::string text;
    for (const auto& decision : decide(rules)) {
      EXPECT_EQ(decision.keep, !decision.reasons.empty());
      if (!decision.keep) continue;
      text += std::to_string(static_cast<std::uint32_t>(decision.version.number)) + " ";
    }
    return text;
  }
  std::vector<VersionInfo> versions_;
  std::vector<VersionNumber> locked_;
  std::int64_t now_ = kStart + 1000 * kDay;
};

TEST_F(Prune, NoRuleKeepsNothing) {
  add(kStart);
  EXPECT_FALSE(KeepRules{}.any());
  EXPECT_EQ(kept({}), "");
}

TEST_F(Prune, LastCountsVersions) {
  for (int i = 0; i < 5; ++i) add(kStart + i);
  EXPECT_EQ(kept(keep({{&KeepRules::last, 2}})), "5 4 ");
  EXPECT_EQ(kept(keep({{&KeepRules::last, 9}})), "5 4 3 2 1 ");
}

TEST_F(Prune, APeriodKeepsItsNewestAndEmptyPeriodsDoNotCount) {
  add(kStart);              // 1: Thursday,
  add(kStart + 2 * kHour);  // 2: the same day,
  add(kStart + 5 * kDay);   // 3: Tuesday,
  add(kStart + 9 * kDay);   // 4: Saturday,
  add(kStart + 9 * kDay + kHour);
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 3}})), "5 3 2 ");
  EXPECT_EQ(kept(keep({{&KeepRules::weekly, 3}})), "5 2 ");
  EXPECT_EQ(kept(keep({{&KeepRules::monthly, 3}})), "5 ");
  EXPECT_EQ(kept(keep({{&KeepRules::hourly, 2}})), "5 4 ");
}

TEST_F(Prune, WeeksBeginOnMondayAlsoAcrossTheYear) {
  add(kStart - 4 * kDay);  // Sunday before.
  add(kStart - 3 * kDay);  // Monday 2025-12-29, week 1 of 2026.
  add(kStart);             // Thursday of the same week.
  EXPECT_EQ(kept(keep({{&KeepRules::weekly, 5}})), "3 1 ");
  EXPECT_EQ(kept(keep({{&KeepRules::yearly, 5}})), "3 2 ");
}

TEST_F(Prune, WithinCountsFromTheNewest) {
  add(kStart);
  add(kStart + kDay);
  add(kStart + 2 * kDay);
  EXPECT_EQ(kept(keep_within(kDay)), "3 2 ");
  EXPECT_EQ(kept(keep_within(0)), "3 ");
}

TEST_F(Prune, RulesAddUp) {
  for (int i = 0; i < 60; ++i) add(kStart + i * kDay);
  EXPECT_EQ(kept(keep({{&KeepRules::last, 1}, {&KeepRules::daily, 2}, {&KeepRules::monthly, 3}})),
            "60 59 31 ");
}

TEST_F(Prune, OpenVersionsAreLeftOutAndLockedOnesKept) {
  add(kStart);
  add(kStart + 1);
  add(kStart + 2, VersionState::kOpen);
  locked_ = {VersionNumber{1}};
  EXPECT_EQ(kept(keep({{&KeepRules::last, 1}})), "2 1 ");
}

TEST_F(Prune, TheLaterSealedIsNewerWhereTimesAreEqual) {
  add(kStart);
  add(kStart);
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 1}})), "2 ");
}

TEST_F(Prune, NewestGoesByNumberWhereAClockWasSetBack) {
  add(kStart + 10 * kDay);
  add(kStart);
  EXPECT_EQ(kept(keep({{&KeepRules::last, 1}})), "2 ");
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 1}})), "2 ");
  EXPECT_EQ(kept(keep_within(kDay)), "2 1 ");
}

TEST_F(Prune, VersionsOfTheFutureStayAndPushNoneOut) {
  add(kStart);
  add(kStart + kDay);
  add(kStart + 4000 * kDay);
  now_ = kStart + 2 * kDay;
  EXPECT_EQ(kept(keep({{&KeepRules::last, 1}})), "3 2 ");
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 2}})), "3 2 1 ");
  EXPECT_EQ(kept(keep({{&KeepRules::yearly, 1}})), "3 2 ");
  EXPECT_EQ(kept(keep_within(kDay)), "3 2 1 ");
  const auto decisions = decide(keep({{&KeepRules::last, 1}}));
  EXPECT_TRUE(decisions.front().future);
  EXPECT_EQ(decisions.front().reasons, std::vector<std::string>{"future"});
}

TEST_F(Prune, AVersionOfTheFutureCountsOnceItsTimeHasCome) {
  add(kStart);
  add(kStart + kDay);
  now_ = kStart + kDay;
  EXPECT_EQ(kept(keep({{&KeepRules::last, 1}})), "2 ");
}

TEST_F(Prune, EmptyVersionsPushNoneOut) {
  add(kStart);
  add(kStart + kDay);
  for (int i = 1; i <= 5; ++i) add_empty(kStart + kDay + i * kHour);
  add_empty(kStart + 40 * kDay);
  EXPECT_EQ(kept(keep({{&KeepRules::last, 2}})), "2 1 ");
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 2}})), "2 1 ");
  EXPECT_EQ(kept(keep({{&KeepRules::monthly, 1}})), "2 ");
  EXPECT_EQ(kept(keep_within(kDay)), "8 7 6 5 4 3 2 1 ");
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 3}})), "8 2 1 ");
  EXPECT_EQ(kept(keep({{&KeepRules::last, 3}})), "8 2 1 ");
}

TEST_F(Prune, OfAPeriodTheNewestCompleteVersionStays) {
  for (int i = 0; i < 4; ++i) add(kStart + i * kHour);
  add(kStart + kDay);
  for (const int incomplete : {0, 2, 3, 4}) versions_[incomplete].problems = 1;
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 2}})), "5 2 ");
  EXPECT_EQ(kept(keep({{&KeepRules::hourly, 3}})), "5 4 3 2 ");
}

TEST_F(Prune, IncompleteVersionsNeverPushTheLastCompleteOneOut) {
  for (int i = 0; i < 10; ++i) add(kStart + i * kDay);
  for (int i = 3; i < 10; ++i) versions_[i].problems = 7;
  EXPECT_EQ(kept(keep({{&KeepRules::last, 3}})), "10 9 8 3 ");
  EXPECT_EQ(kept(keep({{&KeepRules::daily, 2}})), "10 9 3 ");
  EXPECT_EQ(kept(keep_within(kDay)), "10 9 3 ");
  EXPECT_EQ(kept({}), "");
}

TEST_F(Prune, EmptyVersionsAloneSatisfyRules) {
  add_empty(kStart);
  add_empty(kStart + kDay);
  EXPECT_EQ(kept(keep({{&KeepRules::last, 1}})), "2 ");
  EXPECT_EQ(kept(keep_within(0)), "2 ");
}

// 30 dated snapshots of another program, imported in one hour, and the rules of varve-backup@.
TEST_F(Prune, ImportedVersionsAreJudgedByTheTimesOfTheirData) {
  for (int i = 0; i < 30; ++i) add(kStart + 100 * kDay + i);
  now_ = kStart + 101 * kDay;
  for (int i = 0; i < 30; ++i) versions_[i].claimed_at = {kStart + (70 + i) * kDay, 0};
  KeepRules rules = keep({{&KeepRules::last, 3}, {&KeepRules::daily, 30}});
  EXPECT_EQ(std::ranges::count(decide(rules), true, &PruneDecision::keep), 30);
  rules.by_claimed = false;
  EXPECT_EQ(kept(rules), "30 29 28 ");
  // The next version is of today, and pushes out the oldest one of 30 days only.
  add(kStart + 101 * kDay);
  rules.by_claimed = true;
  const auto decisions = decide(rules);
  EXPECT_EQ(std::ranges::count(decisions, true, &PruneDecision::keep), 30);
  EXPECT_FALSE(decisions.back().keep);
}

TEST_F(Prune, ClaimedTimesCountUnlessTheyAreAfterTheSeal) {
  for (int i = 0; i < 4; ++i) add(kStart + 10 * kDay + i);
  versions_[0].claimed_at = {kStart + 3 * kDay, 0};
  versions_[1].claimed_at = {kStart + 1 * kDay, 0};
  versions_[2].claimed_at = {kStart + 1 * kDay + kHour, 0};
  KeepRules rules = keep({{&KeepRules::daily, 3}});
  EXPECT_EQ(kept(rules), "4 1 3 ");
  rules.by_claimed = false;
  EXPECT_EQ(kept(rules), "4 ");
  EXPECT_EQ(kept(keep_within(9 * kDay)), "4 1 3 ");
  versions_[1].claimed_at = {now_ + 1, 0};  // After its seal, so the seal counts.
  rules = keep({{&KeepRules::last, 1}});
  EXPECT_EQ(kept(rules), "4 ");
  versions_[1].claimed_at = {};
  versions_[3].sealed_at = {now_ + 1, 0};  // So does one whose seal time is of the future.
  versions_[3].claimed_at = {kStart, 0};
  EXPECT_EQ(kept(rules), "2 4 ");
}

TEST_F(Prune, DeletingAllButTheFutureAndEmptyVersionsIsRefused) {
  add(kStart);
  add_empty(kStart + kHour);
  add(kStart + 4000 * kDay);
  now_ = kStart + kDay;
  auto decisions = decide(keep({{&KeepRules::last, 1}}));
  EXPECT_TRUE(check_prune(decisions));  // Version 1 stays.
  decisions = decide({});
  EXPECT_FALSE(check_prune(decisions));
  locked_ = {VersionNumber{1}};
  EXPECT_TRUE(check_prune(decide({})));
  locked_ = {VersionNumber{2}};
  EXPECT_FALSE(check_prune(decide({})));
}

}  // namespace
}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
#include "copy/version_names.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace varve::copy {
namespace {

VersionInfo original(std::uint32_t number, std::string name) {
  VersionInfo info;
  info.number = static_cast<VersionNumber>(number);
  info.name = std::move(name);
  return info;
}

TargetVersion copied(std::uint32_t number, std::string name) {
  TargetVersion version;
  version.number = static_cast<VersionNumber>(number + 100);
  version.name = std::move(name);
  version.origin = VersionOrigin();
  version.origin->number = static_cast<VersionNumber>(number);
  return version;
}

/// Applies the renames, which must each lead to a free name. Returns the names by number.
std::map<std::uint32_t, std::string> names_after(const std::vector<VersionInfo>& originals,
                                                 const std::vector<TargetVersion>& copies) {
  std::map<std::uint32_t, std::string> names;
  for (const auto& copy : copies) names[static_cast<std::uint32_t>(copy.number) - 100] = copy.name;
  for (const NameChange& change : plan_names(originals, copies)) {
    for (const auto& [number, name] : names) EXPECT_NE(name, change.to);
    auto& name = names.at(static_cast<std::uint32_t>(change.number) - 100);
    EXPECT_EQ(name, change.from);
    name = change.to;
  }
  return names;
}

using Names = std::map<std::uint32_t, std::string>;

TEST(PlanNames, EqualNamesNeedNothing) {
  EXPECT_TRUE(plan_names({original(1, "a")}, {copied(1, "a")}).empty());
}

TEST(PlanNames, RotationMovesEachNameAndKeepsTheDeletedVersion) {
  const auto names = names_after({original(2, "d.2"), original(3, "d.1"), original(4, "d.0")},
                                 {copied(1, "d.2"), copied(2, "d.1"), copied(3, "d.0")});
  EXPECT_EQ(names, (Names{{1, "d.2.kept-101"}, {2, "d.2"}, {3, "d.1"}}));
}

TEST(PlanNames, ExchangedNamesGoThroughAThird) {
  const auto names =
      names_after({original(1, "b"), original(2, "a")}, {copied(1, "a"), copied(2, "b")});
  EXPECT_EQ(names, (Names{{1, "b"}, {2, "a"}}));
}

TEST(PlanNames, DeletedVersionKeepsItsNameWhileItIsFree) {
  const auto names = names_after({original(2, "b")}, {copied(1, "a"), copied(2, "b")});
  EXPECT_EQ(names, (Names{{1, "a"}, {2, "b"}}));
}

TEST(PlanNames, LongNamesGetASuffixInsideTheLimit) {
  const std::string longest(255, 'x');
  const auto names = names_after({original(2, longest)}, {copied(1, longest)});
  EXPECT_EQ(names.at(1).size(), 255U);
}

}  // namespace
}  // namespace varve::copy

// SPDX-License-Identifier: Apache-2.0
#include "control/home_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "support/environment_variable.h"
#include "support/temp_repository.h"

namespace varve::control {
namespace {

// Every system has this user, whose home is neither a folder of a test nor relative.
constexpr uid_t kRecordedUser = 65534;
constexpr uid_t kUnknownUser = 3'999'999'999;

TEST(HomeFolder, OwnHomeOfTheEnvironmentIsUsed) {
  const test::TempDirectory folder;
  const test::EnvironmentVariable home("HOME", folder.path());
  EXPECT_EQ(home_folder(::geteuid()), folder.path());
}

TEST(HomeFolder, AnotherUsersHomeIsReplacedByTheRecordedOne) {
  const test::TempDirectory folder;
  const test::EnvironmentVariable home("HOME", folder.path());
  const auto recorded = home_folder(kRecordedUser);
  EXPECT_NE(recorded, folder.path());
  EXPECT_TRUE(recorded.starts_with('/')) << recorded;
}

TEST(HomeFolder, RelativeAndMissingHomesAreReplacedByTheRecordedOne) {
  for (const std::string value : {"", "somewhere", "/no/such/folder"}) {
    const test::EnvironmentVariable home("HOME", value);
    const auto recorded = home_folder(kRecordedUser);
    EXPECT_NE(recorded, value);
    EXPECT_TRUE(recorded.starts_with('/')) << recorded;
  }
}

TEST(HomeFolder, UserWithoutARecordKeepsTheHomeOfTheEnvironment) {
  const test::TempDirectory folder;
  const test::EnvironmentVariable home("HOME", folder.path());
  EXPECT_EQ(home_folder(kUnknownUser), folder.path());
  const test::EnvironmentVariable relative("HOME", "somewhere");
  EXPECT_EQ(home_folder(kUnknownUser), "");
}

}  // namespace
}  // namespace varve::control

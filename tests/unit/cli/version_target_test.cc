// SPDX-License-Identifier: Apache-2.0
#include "cli/version_target.h"

#include <gtest/gtest.h>

#include "support/environment_variable.h"
#include "support/temp_repository.h"

namespace varve::cli {
namespace {

using test::code_of;
using test::EnvironmentVariable;
using test::must;

TEST(VersionTarget, RepositoryAndVersionNameIt) {
  const EnvironmentVariable other("VARVE_REPO", "/elsewhere");
  const VersionTarget target = must(find_target("/repo", "laptop/monday"));
  EXPECT_EQ(target.repository, "/repo");
  EXPECT_EQ(name_of(target.version), "laptop/monday");
}

TEST(VersionTarget, OneWordIsAVersionOfTheRepositoryInTheEnvironment) {
  const EnvironmentVariable repository("VARVE_REPO", "/repo");
  for (const auto& target :
       {find_target("no-such-series/monday", ""), find_new_target("no-such-series/monday", "")}) {
    ASSERT_TRUE(target) << target.error().message();
    EXPECT_EQ(target->repository, "/repo");
    EXPECT_EQ(name_of(target->version), "no-such-series/monday");
  }
}

TEST(VersionTarget, OneWordWithoutEnvironmentIsRefused) {
  const EnvironmentVariable none("VARVE_REPO", "");
  EXPECT_EQ(code_of(find_target("no-such-series/monday", "")), ErrorCode::kUsage);
  EXPECT_EQ(code_of(find_new_target("no-such-series/monday", "")), ErrorCode::kUsage);
}

TEST(VersionTarget, NoWordIsRefused) {
  const EnvironmentVariable repository("VARVE_REPO", "/repo");
  EXPECT_EQ(code_of(find_target("", "")), ErrorCode::kUsage);
  EXPECT_EQ(code_of(find_new_target("", "")), ErrorCode::kUsage);
}

TEST(VersionTarget, SeriesAloneOrAPathInAVersionIsRefused) {
  for (const char* word : {"laptop", "laptop/", "laptop/monday/file"}) {
    EXPECT_EQ(code_of(find_target("/repo", word)), ErrorCode::kUsage) << word;
    EXPECT_EQ(code_of(find_new_target("/repo", word)), ErrorCode::kUsage) << word;
  }
}

TEST(VersionTarget, SlashesAtTheEndDoNotCount) {
  EXPECT_EQ(name_of(must(find_target("/repo", "laptop//monday/")).version), "laptop/monday");
}

}  // namespace
}  // namespace varve::cli

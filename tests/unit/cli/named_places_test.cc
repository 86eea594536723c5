// SPDX-License-Identifier: Apache-2.0
#include "cli/named_places.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/version_target.h"
#include "control/named_version.h"
#include "support/environment_variable.h"
#include "support/temp_repository.h"

namespace varve::cli {
namespace {

using test::code_of;
using test::EnvironmentVariable;
using test::must;
using test::TempDirectory;
using Words = std::vector<std::string>;

/// A folder that looks like a repository.
class NamedPlacesTest : public testing::Test {
 protected:
  NamedPlacesTest() { must(Repository::create(repository_, {})); }

  TempDirectory directory_;
  const std::string repository_ = directory_.path() + "/repo";
};

TEST_F(NamedPlacesTest, FolderOfARepositoryComesFirst) {
  const EnvironmentVariable other("VARVE_REPO", "/elsewhere");
  const NamedPlaces named = must(find_places({repository_, "laptop/monday", "laptop"}, {}));
  EXPECT_EQ(named.repository, repository_);
  ASSERT_EQ(named.places.size(), 2U);
  EXPECT_EQ(name_of(named.places[0]), "laptop/monday");
  EXPECT_EQ(named.places[1].series, "laptop");
  EXPECT_TRUE(named.places[1].version.empty());
  EXPECT_FALSE(named.in_mount);
}

TEST_F(NamedPlacesTest, EnvironmentNamesTheRepositoryWhereTheFirstWordDoesNot) {
  const EnvironmentVariable variable("VARVE_REPO", repository_);
  const NamedPlaces named = must(find_places({"laptop/monday"}, {.least = 1}));
  EXPECT_EQ(named.repository, repository_);
  ASSERT_EQ(named.places.size(), 1U);
  EXPECT_EQ(name_of(named.places[0]), "laptop/monday");
  EXPECT_EQ(must(find_places({}, {})).repository, repository_);
}

TEST_F(NamedPlacesTest, WordsBeyondTheMostAreTheRest) {
  const Words words{repository_, "laptop/monday", "target", "more"};
  const NamedPlaces named = must(find_places(words, {.least = 1, .most = 1}));
  EXPECT_EQ(named.places.size(), 1U);
  EXPECT_EQ(named.rest, (Words{"target", "more"}));
}

TEST_F(NamedPlacesTest, FolderWithoutRepositoryIsTakenWhereEnoughWordsFollow) {
  const EnvironmentVariable none("VARVE_REPO", "");
  EXPECT_EQ(must(find_places({"/missing"}, {})).repository, "/missing");
  EXPECT_EQ(must(find_places({"/missing", "a/b"}, {.least = 1})).repository, "/missing");
  EXPECT_EQ(code_of(find_places({"a/b"}, {.least = 1})), ErrorCode::kUsage);
}

TEST_F(NamedPlacesTest, TooFewPlacesAreRefused) {
  const EnvironmentVariable none("VARVE_REPO", "");
  EXPECT_EQ(code_of(find_places({}, {})), ErrorCode::kUsage);
  EXPECT_EQ(code_of(find_places({repository_}, {.least = 1})), ErrorCode::kUsage);
}

TEST_F(NamedPlacesTest, SeriesAreFoundOnceEachAndUnknownOnesNamed) {
  auto repository = must(Repository::open(repository_, test::quiet_options()));
  for (const char* name : {"laptop", "server"}) must(repository->create_series(name));
  EXPECT_EQ(must(find_series(*repository, {})).size(), 2U);
  const VersionPath laptop{"laptop", "", ""};
  EXPECT_EQ(must(find_series(*repository, {laptop, laptop})).size(), 1U);
  EXPECT_EQ(code_of(find_series(*repository, {{"laptop", "monday", ""}})), ErrorCode::kUsage);
  const auto unknown = control::find_series(*repository, "phone");
  ASSERT_EQ(code_of(unknown), ErrorCode::kNotFound);
  EXPECT_NE(unknown.error().message().find("\"phone\""), std::string::npos);
}

TEST_F(NamedPlacesTest, WholeVersionIsRefusedWithAPathOrWithoutAVersion) {
  auto repository = must(Repository::open(repository_, test::quiet_options()));
  must(repository->create_series("laptop"));
  EXPECT_EQ(code_of(find_whole_version(*repository, {"laptop", "monday", "file"})),
            ErrorCode::kUsage);
  EXPECT_EQ(code_of(find_whole_version(*repository, {"laptop", "", ""})), ErrorCode::kUsage);
  EXPECT_EQ(code_of(find_whole_version(*repository, {"laptop", "monday", ""})),
            ErrorCode::kNotFound);
}

TEST_F(NamedPlacesTest, OnlyAFolderWithASuperblockHoldsARepository) {
  EXPECT_TRUE(holds_repository(repository_));
  EXPECT_FALSE(holds_repository(directory_.path()));
  EXPECT_FALSE(holds_repository("/missing"));
}

}  // namespace
}  // namespace varve::cli

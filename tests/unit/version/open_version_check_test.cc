// SPDX-License-Identifier: Apache-2.0
// Tests what a check finds in the records of an open version. The parameter says whether the
// version is encrypted.
#include "version/open_version_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "io/posix_file_system.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::version {
namespace {

using varve::test::must;

class OpenVersionCheck : public testing::TestWithParam<bool> {
 protected:
  OpenVersionCheck() {
    std::filesystem::create_directory(directory_.path() + "/overlay");
    version_.staging_directory = directory_.path();
    version_.series = SeriesId{1};
    version_.number = VersionNumber{1};
    version_.base_end = 12;
    if (GetParam()) version_.keys = test::test_keys();
  }
  // Makes an overlay with a removed file of the base, and with a counter of inodes unless it is 0.
  std::vector<std::string> faults_with_counter(Ino counter) {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    options.keys = meta::overlay_keys(version_.keys, version_.series, version_.number);
    {
      const auto env = must(meta::Env::open(directory_.path() + "/overlay", options));
      auto txn = must(meta::WriteTxn::begin(env));
      must(txn.put(meta::overlay::kInodes, meta::ino_key(20), ""));
      if (counter != 0) must(txn.put(meta::overlay::kState, "next_ino", base::be64(counter)));
      must(txn.commit());
    }
    return must(read_staged_state(*files_, version_)).faults;
  }

  test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_ = io::make_posix_file_system();
  StagedVersion version_;
};

TEST_P(OpenVersionCheck, TakesACounterBehindAllInodes) {
  EXPECT_EQ(faults_with_counter(21), std::vector<std::string>());
}

TEST_P(OpenVersionCheck, FindsACounterThatWouldGiveANumberAgain) {
  const std::vector<std::string> damaged = {"the open version's counter of inodes is damaged"};
  EXPECT_EQ(faults_with_counter(20), damaged);
}

TEST_P(OpenVersionCheck, FindsACounterThatIsGone) {
  const std::vector<std::string> damaged = {"the open version's counter of inodes is damaged"};
  EXPECT_EQ(faults_with_counter(0), damaged);
}

INSTANTIATE_TEST_SUITE_P(Plain, OpenVersionCheck, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, OpenVersionCheck, testing::Values(true));

}  // namespace
}  // namespace varve::version

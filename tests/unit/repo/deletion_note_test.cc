// SPDX-License-Identifier: Apache-2.0
// Damaged notes of deletions in the catalog, as storage or another program may leave them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/coding.h"
#include "catalog/deletion_record.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/check.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class DeletionNote : public testing::Test {
 protected:
  // Leaves a closed repository that has deleted the first of two versions.
  DeletionNote() {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    const auto repository = reopen(path_);
    const auto series = must(repository->create_series("s")).id;
    for (const auto* const name : {"v1", "v2"}) {
      const auto number = must(repository->open_version(series, name, folder())).number;
      write_file(*must(repository->writer(series)), kRootIno, "f",
                 noise(20000, number == VersionNumber{1} ? 1 : 2));
      must(repository->seal(series, number, ""));
    }
    must(repository->delete_versions(series, {VersionNumber{1}}));
    must(repository->close());
  }

  // Puts a value in place of the note. The next opening then compares labels and catalog.
  void put_note(const std::string& value) {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.must_exist = true;
    const auto env = must(meta::Env::open(path_ + "/catalog", options));
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.put(meta::catalog::kSettings, std::string(catalog::kDeletedSetting) + base::be32(1),
                 value));
    must(txn.commit());
    fs::remove(path_ + "/settled");
  }
  [[nodiscard]] std::vector<Damage> damages(bool read_only) const {
    auto options = quiet_options();
    options.read_only = read_only;
    return must(reopen(path_, options)->check({}, {})).damages;
  }

  const TempDirectory directory_;
  const std::string path_ = directory_.path() + "/r";
};

TEST_F(DeletionNote, DamagedNoteCountsAsMissingAndARepairRemovesIt) {
  const auto sound = std::string(1, '\5') + base::be32(1);
  for (const auto& value : {std::string(), std::string(1, '\x80'), std::string(11, '\xff'), sound,
                            std::string(1000, '\xff')}) {
    SCOPED_TRACE(value.size());
    put_note(value);
    for (const bool read_only : {true, false}) {
      const auto found = damages(read_only);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_NE(found[0].what.find("the note of the last deletion in the series s"),
                std::string::npos);
      fs::remove(path_ + "/settled");
    }
    {
      const auto planned = must(Repair::plan(path_, {}, false, {}));
      ASSERT_EQ(planned->steps().size(), 1U);
      EXPECT_EQ(planned->steps()[0].kind, RepairStep::Kind::kDerived);
      EXPECT_TRUE(must(planned->execute({})).problems.empty());
    }
    EXPECT_TRUE(must(Repair::plan(path_, {}, false, {}))->steps().empty());
    EXPECT_TRUE(damages(false).empty());
    const auto repository = reopen(path_);
    const auto versions = must(repository->versions(must(repository->find_series("s")).id));
    ASSERT_EQ(versions.size(), 1U);
    EXPECT_EQ(versions[0].name, "v2");
  }
}

}  // namespace
}  // namespace varve::test

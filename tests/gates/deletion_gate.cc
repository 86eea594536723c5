// SPDX-License-Identifier: Apache-2.0
// Deleting a version between two others reads only pages that changed between those two. The test
// removes all other pages from the catalog: the deletion does not miss them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/coding.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kFolders = 40;
constexpr int kFiles = 5;

class DeletionGate : public testing::Test {
 protected:
  meta::Env catalog() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    return must(meta::Env::open(path_ + "/catalog", options));
  }

  // Returns the keys of all pages that `wanted` accepts by their birth.
  template <typename Wanted>
  std::vector<std::string> pages(const meta::Env& env, Wanted&& wanted) {
    std::vector<std::string> keys;
    const auto txn = must(meta::ReadTxn::begin(env));
    auto cursor = must(meta::Cursor::open(txn, meta::catalog::kNodes));
    for (auto at = must(cursor.seek("")); at; at = must(cursor.next())) {
      const auto id = base::load_be64(at->key.substr(sizeof(std::uint32_t)));
      if (wanted(static_cast<VersionNumber>(id >> 32))) keys.emplace_back(at->key);
    }
    return keys;
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
};

TEST_F(DeletionGate, ReadsOnlyWhatChangedBetweenTheNeighbours) {
  must(Repository::create(path_, test::small_chunks(Codec::kNone)));
  std::vector<VersionNumber> versions;
  SeriesId series{};
  {
    const auto repository = test::reopen(path_);
    series = must(repository->create_series("s")).id;
    versions.push_back(must(repository->open_version(series, "v0", test::folder())).number);
    {
      const auto writer = must(repository->writer(series));
      for (int i = 0; i < kFolders; ++i) {
        const auto folder =
            must(writer->create(kRootIno, "d" + std::to_string(i), test::folder())).ino;
        for (int j = 0; j < kFiles; ++j) {
          test::write_file(*writer, folder, "f" + std::to_string(j), "text");
        }
      }
    }
    must(repository->seal(series, versions[0], ""));
    for (int i = 1; i < 4; ++i) {
      const auto name = "v" + std::to_string(i);
      versions.push_back(must(repository->clone_version(series, versions.back(), name)).number);
      test::write_file(*must(repository->writer(series)), kRootIno, name, name);
      must(repository->seal(series, versions.back(), ""));
    }
  }
  {
    const auto env = catalog();
    const auto old = pages(env, [&](VersionNumber birth) { return birth <= versions[1]; });
    ASSERT_GT(old.size(), static_cast<std::size_t>(kFolders));
    auto txn = must(meta::WriteTxn::begin(env));
    for (const auto& key : old) must(txn.erase(meta::catalog::kNodes, key));
    must(txn.commit());
    ASSERT_FALSE(pages(env, [&](VersionNumber birth) { return birth == versions[2]; }).empty());
  }
  must(test::reopen(path_)->delete_versions(series, {versions[2]}, {}));
  const auto env = catalog();
  EXPECT_TRUE(pages(env, [&](VersionNumber birth) { return birth == versions[2]; }).empty());
  EXPECT_FALSE(pages(env, [&](VersionNumber birth) { return birth == versions[3]; }).empty());
}

}  // namespace
}  // namespace varve

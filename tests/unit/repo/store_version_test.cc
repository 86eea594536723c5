// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/repository.h"

namespace varve::test {
namespace {

class StoreVersionTest : public testing::Test {
 protected:
  StoreVersionTest() : source_(directory_.path() + "/source"), path_(directory_.path() + "/r") {
    std::filesystem::create_directories(source_ + "/folder");
    for (const char* name : {"/a", "/b", "/folder/c"}) std::ofstream(source_ + name) << name;
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    repository_ = reopen(path_);
  }

  [[nodiscard]] StoreRequest request() const { return {"s", "one", source_, {}}; }
  /// Seals the stored version and returns a reader of it.
  [[nodiscard]] std::shared_ptr<VersionReader> seal(const StoredVersion& stored) {
    const auto sealed = must(repository_->seal(stored.info.series, stored.info.number, ""));
    return must(repository_->reader(sealed.info.series, sealed.info.number));
  }

  TempDirectory directory_;
  std::string source_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
};

TEST_F(StoreVersionTest, StoresTheTreeAndLeavesTheVersionOpen) {
  const auto stored = must(repository_->store_version(request(), {}));
  EXPECT_EQ(stored.info.state, VersionState::kOpen);
  EXPECT_EQ(stored.report.entries, 4U);
  EXPECT_TRUE(stored.report.problems.empty());
  const auto version = seal(stored);
  EXPECT_EQ(version->info().name, "one");
  EXPECT_EQ(version->info().entries, 4U);
  EXPECT_EQ(read_sealed(*version, "folder/c"), "/folder/c");
}

TEST_F(StoreVersionTest, ContinuesAnInterruptedVersionOfTheSameName) {
  const auto stop = [](const TransferProgress& done) { return done.files_done < 2; };
  EXPECT_EQ(code_of(repository_->store_version(request(), stop)), ErrorCode::kInterrupted);
  const auto series = must(repository_->find_series("s"));
  ASSERT_EQ(must(repository_->open_versions(series.id)).size(), 1U);
  const auto stored = must(repository_->store_version(request(), {}));
  EXPECT_EQ(stored.info.number, VersionNumber{1});
  EXPECT_EQ(read_sealed(*seal(stored), "b"), "/b");
}

TEST_F(StoreVersionTest, RefusesASourceInTheRepository) {
  StoreRequest inside = request();
  for (const std::string& place : {path_, path_ + "/series"}) {
    inside.directory = place;
    EXPECT_EQ(code_of(repository_->store_version(inside, {})), ErrorCode::kInvalid) << place;
  }
  EXPECT_TRUE(must(repository_->series()).empty());
}

TEST_F(StoreVersionTest, StoresTheRepositoryAsAnEmptyDirectory) {
  std::vector<std::string> left_out;
  StoreRequest above = request();
  above.directory = directory_.path();
  above.options.left_out = [&](const std::string& path) { left_out.push_back(path); };
  const auto version = seal(must(repository_->store_version(above, {})));
  EXPECT_EQ(left_out, std::vector<std::string>{"r"});
  EXPECT_EQ(read_sealed(*version, "source/a"), "/a");
  EXPECT_EQ(code_of(version->lookup(find(*version, "r"), "varve.repo")), ErrorCode::kNotFound);
}

TEST_F(StoreVersionTest, AMissingSourceLeavesNoSeries) {
  StoreRequest missing = request();
  missing.directory += "/none";
  EXPECT_EQ(code_of(repository_->store_version(missing, {})), ErrorCode::kIo);
  missing.directory = source_ + "/a";
  EXPECT_EQ(code_of(repository_->store_version(missing, {})), ErrorCode::kNotDirectory);
  EXPECT_TRUE(must(repository_->series()).empty());
}

// A clone has what its base has, and lacks what its base lacks.
TEST_F(StoreVersionTest, CloneOfAnIncompleteVersionIsIncompleteUntilAStoreCompletesIt) {
  StoreRequest lacking = request();
  lacking.options.only = std::vector<std::string>{"a", "missing"};
  const auto first = must(repository_->store_version(lacking, {}));
  EXPECT_EQ(seal(first)->info().problems, 1U);
  const auto series = first.info.series;
  const auto clone = [&](VersionNumber source, const std::string& name) {
    return must(repository_->clone_version(series, source, name));
  };
  // A clone of the newest version, and copies of an older one.
  const auto newest = clone(first.info.number, "two");
  write_file(*must(repository_->writer(series)), kRootIno, "more", "new");
  EXPECT_EQ(must(repository_->seal(series, newest.number, "")).info.problems, 1U);
  const auto older = clone(first.info.number, "three");
  EXPECT_EQ(must(repository_->seal(series, older.number, "")).info.problems, 1U);
  const auto reopened = clone(older.number, "three");
  EXPECT_EQ(must(repository_->seal(series, reopened.number, "three")).info.problems, 1U);

  for (const auto& [source, name] : {std::pair(reopened.number, "four"), {newest.number, "five"}}) {
    clone(source, name);
    auto whole = request();
    whole.version = name;
    EXPECT_EQ(seal(must(repository_->store_version(whole, {})))->info().problems, 0U);
  }
}

}  // namespace
}  // namespace varve::test

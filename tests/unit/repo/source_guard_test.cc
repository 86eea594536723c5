// SPDX-License-Identifier: Apache-2.0
// store_version() and store_stream() of sources that seem to be incomplete.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "repo/incomplete_mark.h"
#include "support/kernel_tick.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/refused_store.h"
#include "varve/repository.h"
#include "varve/store.h"
#include "varve/upkeep.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class SourceGuardTest : public testing::Test {
 protected:
  SourceGuardTest() {
    fs::create_directories(source_ + "/folder");
    for (int i = 0; i < 10; ++i) write("folder/f" + std::to_string(i), std::string(1000, 'x'));
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
  }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(source_ + "/" + name, std::ios::binary) << bytes;
  }
  void keep_files(int count) const {
    for (int i = count; i < 10; ++i) fs::remove(source_ + "/folder/f" + std::to_string(i));
  }
  void empty_source() const {
    fs::remove_all(source_);
    fs::create_directory(source_);
  }
  [[nodiscard]] StoreRequest request(const std::string& version) const {
    StoreRequest request;
    request.series = "s";
    request.version = version;
    request.directory = source_;
    request.seals = true;
    request.settle_s = 0;
    request.guard = true;
    return request;
  }
  Result<StoredVersion> try_store(const StoreRequest& request) {
    wait_for_kernel_tick();
    VARVE_TRY_ASSIGN(const StoredVersion stored, repository_->store_version(request, {}));
    VARVE_TRY(seal_stored(*repository_, stored));
    return stored;
  }
  ErrorCode code_of_store(const std::string& version) {
    return code_of(try_store(request(version)));
  }
  void store(const std::string& version) { must(try_store(request(version))); }
  /// Stores a source of which one file cannot be read.
  void store_incomplete(const StoreRequest& request) {
    const auto stored = must(repository_->store_version(request, {}));
    must(repo::mark_problems(*must(repository_->writer(series())), 1));
    must(seal_stored(*repository_, stored));
  }

  [[nodiscard]] SeriesId series() { return must(repository_->find_series("s")).id; }
  [[nodiscard]] std::optional<RefusedStore> refused() {
    return must(repository_->refused_store(series()));
  }
  /// Expects a refused store, which leaves the newest version and no open one.
  void expect_refused(const std::string& version, const std::string& newest, RefusalReason reason) {
    EXPECT_EQ(code_of_store(version), ErrorCode::kRefused);
    EXPECT_EQ(must(repository_->find_version(series(), "latest")).name, newest);
    EXPECT_TRUE(must(repository_->open_versions(series())).empty());
    for (const auto& file : fs::recursive_directory_iterator(path_ + "/series")) {
      EXPECT_NE(file.path().extension(), ".tmp") << file.path();
    }
    ASSERT_TRUE(refused());
    EXPECT_EQ(refused()->reason, reason);
    EXPECT_GT(refused()->at.seconds, 0);
  }

  // On a disk, where a store does not read the files that did not change.
  TempDirectory directory_{"/var/tmp"};
  const std::string source_ = directory_.path() + "/source";
  const std::string path_ = directory_.path() + "/r";
  std::unique_ptr<Repository> repository_;
};

TEST_F(SourceGuardTest, AnEmptySourceIsRefusedUntilAStoreSucceeds) {
  store("1");
  EXPECT_FALSE(refused());
  fs::rename(source_, directory_.path() + "/aside");
  fs::create_directories(source_ + "/lost+found");
  const auto chunks = must(repository_->stats()).chunks;
  for (const char* night : {"2", "3", "4"}) expect_refused(night, "1", RefusalReason::kEmpty);
  EXPECT_EQ(must(repository_->stats()).chunks, chunks);
  EXPECT_EQ(must(repository_->versions(series())).size(), 1U);
  must(repository_->close());
  repository_.reset();
  repository_ = reopen(path_);
  EXPECT_TRUE(refused());
  fs::remove_all(source_);
  fs::rename(directory_.path() + "/aside", source_);
  store("5");
  EXPECT_FALSE(refused());
}

TEST_F(SourceGuardTest, FilesInLostAndFoundAreContent) {
  empty_source();
  fs::create_directory(source_ + "/lost+found");
  write("lost+found/#12", "found");
  store("1");
}

TEST_F(SourceGuardTest, AnEmptySourceIsNoFirstVersion) {
  empty_source();
  EXPECT_EQ(code_of_store("1"), ErrorCode::kRefused);
  EXPECT_TRUE(must(repository_->series()).empty());
  StoreRequest excluded = request("1");
  write("a", "x");
  excluded.options.excludes = {"a"};
  EXPECT_EQ(code_of(try_store(excluded)), ErrorCode::kRefused);
  excluded.guard = false;
  must(try_store(excluded));
}

TEST_F(SourceGuardTest, MoreThanHalfOfNamesAndBytesMayNotBeLost) {
  store("1");  // 11 names.
  keep_files(5);
  store("2");  // 6 names.
  keep_files(2);
  store("3");  // Exactly half of the names.
  keep_files(0);
  expect_refused("4", "3", RefusalReason::kShrunk);
  StoreRequest allowed = request("5");
  allowed.guard = false;
  must(try_store(allowed));
  EXPECT_FALSE(refused());
}

TEST_F(SourceGuardTest, IncompleteVersionsAreNoSmallerMeasure) {
  store("1");  // 11 names.
  keep_files(5);
  store_incomplete(request("2"));  // 6 names.
  keep_files(2);
  expect_refused("3", "2", RefusalReason::kShrunk);
  StoreRequest allowed = request("3");
  allowed.guard = false;
  store_incomplete(allowed);  // 3 names, at the user's word: the new measure.
  store_incomplete(request("4"));
  store("5");
}

// A file that changes during each store makes each version incomplete.
TEST_F(SourceGuardTest, AnAllowedLossIsNotRefusedAgain) {
  store_incomplete(request("1"));  // 11 names.
  store_incomplete(request("2"));
  keep_files(2);
  expect_refused("3", "2", RefusalReason::kShrunk);
  StoreRequest allowed = request("3");
  allowed.guard = false;
  store_incomplete(allowed);
  store_incomplete(request("4"));
  keep_files(0);
  expect_refused("5", "4", RefusalReason::kShrunk);
}

TEST_F(SourceGuardTest, IncompleteVersionsAreAMeasureWithoutALargerOne) {
  store_incomplete(request("1"));
  keep_files(5);
  store_incomplete(request("2"));
  keep_files(2);
  expect_refused("3", "2", RefusalReason::kShrunk);  // No version is complete.
  keep_files(0);
  StoreRequest allowed = request("3");
  allowed.guard = false;
  must(try_store(allowed));  // 1 name.
  for (int i = 0; i < 10; ++i) write("folder/f" + std::to_string(i), "back");
  store_incomplete(request("4"));
  keep_files(0);
  expect_refused("5", "4", RefusalReason::kShrunk);
}

TEST_F(SourceGuardTest, OlderDataIsNoMeasure) {
  store("1");
  keep_files(1);
  fs::rename(source_, directory_.path() + "/aside");
  fs::create_directory(source_);
  write("a", "x");
  StoreRequest imported = request("old");
  imported.guard = false;
  const auto stored = must(repository_->store_version(imported, {}));
  must(claim_time(*repository_, stored.info, Timestamp{1000, 0}));
  must(seal_stored(*repository_, stored));
  fs::remove_all(source_);
  fs::rename(directory_.path() + "/aside", source_);
  expect_refused("2", "old", RefusalReason::kShrunk);
}

TEST_F(SourceGuardTest, ATimeAheadOfTheClockIsNoMeasure) {
  store("small");
  fs::create_directories(source_ + "/other");
  for (int i = 0; i < 30; ++i) write("other/f" + std::to_string(i), std::string(1000, 'y'));
  wait_for_kernel_tick();
  const auto stored = must(repository_->store_version(request("imported"), {}));
  const auto now = base::SystemClock().now();
  must(claim_time(*repository_, stored.info, Timestamp{now.seconds + 1'000'000, 0}));
  must(seal_stored(*repository_, stored));
  fs::remove_all(source_ + "/other");
  store("next");
  keep_files(1);
  EXPECT_EQ(code_of(try_store(request("shrunk"))), ErrorCode::kRefused);
}

TEST_F(SourceGuardTest, LostNamesOrLostBytesAloneAreNoReason) {
  store("1");
  keep_files(0);
  write("image", std::string(10000, 'y'));
  store("2");  // 2 names of 11.
  write("image", "");
  for (int i = 0; i < 10; ++i) write("folder/f" + std::to_string(i), "");
  store("3");  // No bytes.
  keep_files(0);
  expect_refused("4", "3", RefusalReason::kShrunk);  // A version without bytes cannot lose any.
}

TEST_F(SourceGuardTest, FilesCutToNothingAreALoss) {
  store("1");
  for (int i = 0; i < 10; ++i) write("folder/f" + std::to_string(i), "");
  expect_refused("2", "1", RefusalReason::kShrunk);
  for (int i = 0; i < 4; ++i) write("folder/f" + std::to_string(i), "left");
  expect_refused("3", "1", RefusalReason::kShrunk);  // 4 of 10 files, 16 of 10,000 bytes.
  write("folder/f4", "left");
  store("4");  // Half of the files.
}

TEST_F(SourceGuardTest, FilesThatBecameFoldersAreALoss) {
  store("1");
  keep_files(0);
  for (int i = 0; i < 10; ++i) fs::create_directory(source_ + "/folder/f" + std::to_string(i));
  expect_refused("2", "1", RefusalReason::kShrunk);
}

TEST_F(SourceGuardTest, ALargeFileOrARotatedLogIsNoLoss) {
  write("image", std::string(1'000'000, 'y'));
  store("1");
  fs::remove(source_ + "/image");
  store("2");  // 1 % of the bytes.
  write("folder/log", std::string(1'000'000, 'z'));
  store("3");
  write("folder/log", "");
  write("folder/log.1.gz", std::string(1000, 'z'));
  store("4");
}

TEST_F(SourceGuardTest, AFewEmptiedFilesAreNoLoss) {
  keep_files(9);
  store("1");
  for (int i = 0; i < 9; ++i) write("folder/f" + std::to_string(i), "");
  store("2");
}

TEST_F(SourceGuardTest, SecondNamesOfFilesCount) {
  keep_files(1);
  for (int i = 0; i < 9; ++i) {
    fs::create_hard_link(source_ + "/folder/f0", source_ + "/folder/g" + std::to_string(i));
  }
  store("1");
  write("folder/f0", "");
  expect_refused("2", "1", RefusalReason::kShrunk);
}

TEST_F(SourceGuardTest, AnotherDirectoryWithTheSameContentIsNoReason) {
  store("1");
  StoreRequest snapshot = request("2");
  snapshot.directory = directory_.path() + "/snapshot";
  fs::copy(source_, snapshot.directory, fs::copy_options::recursive);
  must(try_store(snapshot));
}

TEST_F(SourceGuardTest, UnchangedFilesCount) {
  store("1");
  write("new", "x");
  const auto stored = must(try_store(request("2")));
  EXPECT_EQ(stored.report.unchanged, 10U);
  EXPECT_EQ(stored.report.unchanged_bytes, 10000U);
  EXPECT_EQ(stored.report.bytes, 1U);
}

TEST_F(SourceGuardTest, ARefusedStoreDropsTheNewVersionOnly) {
  store("1");
  must(repository_->open_version(series(), "mine", folder()));
  empty_source();
  EXPECT_EQ(code_of_store("mine"), ErrorCode::kRefused);
  ASSERT_EQ(must(repository_->open_versions(series())).size(), 1U);
  write("added", "x");
  store("mine");  // The user's own version may have any content.
}

TEST_F(SourceGuardTest, AShrunkSourceDropsTheVersionOfAnInterruptedStore) {
  store("1");
  const auto stop = [](const TransferProgress& done) { return done.files_done < 3; };
  write("more", "x");
  EXPECT_EQ(code_of(repository_->store_version(request("2"), stop)), ErrorCode::kInterrupted);
  keep_files(0);
  expect_refused("3", "1", RefusalReason::kShrunk);
}

TEST_F(SourceGuardTest, AListOfFilesMayNameFew) {
  store("1");
  StoreRequest listed = request("2");
  listed.options.only = {"folder/f1"};
  must(try_store(listed));
}

TEST_F(SourceGuardTest, TheRepositoryMayAllowAllSources) {
  store("1");
  UpkeepSettings settings;
  settings.guards_sources = false;
  must(repository_->set_upkeep_settings(settings));
  empty_source();
  store("2");
}

TEST_F(SourceGuardTest, AVersionThatStaysOpenIsNotCompared) {
  store("1");
  empty_source();
  StoreRequest kept = request("2.partial");
  kept.seals = false;
  must(repository_->store_version(kept, {}));
}

TEST_F(SourceGuardTest, APlanSaysThatTheStoreWouldBeRefused) {
  const auto refusal = [&](const StoreRequest& planned) {
    return must(repository_->plan_store(planned, {}, {})).refusal;
  };
  EXPECT_EQ(refusal(request("1")), "");
  store("1");
  EXPECT_EQ(refusal(request("2")), "");
  keep_files(5);
  EXPECT_EQ(refusal(request("2")), "");
  keep_files(2);
  EXPECT_NE(refusal(request("2")).find("72 % of the names and 80 % of the bytes of s/1"),
            std::string::npos);
  StoreRequest other = request("2");
  other.guard = false;
  EXPECT_EQ(refusal(other), "");
  other = request("2");
  other.seals = false;
  EXPECT_EQ(refusal(other), "");
  for (int i = 0; i < 10; ++i) write("folder/f" + std::to_string(i), "");
  EXPECT_NE(refusal(request("2")).find("has 0 files with content, and s/1 has 10"),
            std::string::npos);
  empty_source();
  EXPECT_NE(refusal(request("2")).find("is empty, and s/1 has 11 names"), std::string::npos);
  fs::create_directory(source_ + "/lost+found");
  EXPECT_NE(refusal(request("2")).find("is empty"), std::string::npos);
  EXPECT_FALSE(refused());  // Nothing was tried.
}

TEST_F(SourceGuardTest, ANoteGoesWithItsSeries) {
  store("1");
  empty_source();
  expect_refused("2", "1", RefusalReason::kEmpty);
  const auto id = series();
  must(repository_->delete_versions(id, {VersionNumber{1}}));
  EXPECT_TRUE(refused());  // No newer version was sealed.
  must(repository_->remove_series("s"));
  must(repository_->create_series("s"));
  EXPECT_FALSE(refused());
}

TEST_F(SourceGuardTest, AnEmptyStreamIsRefused) {
  write("dump", "");
  write("archive", std::string(10240, '\0'));  // Of tar, without a member.
  StreamRequest stream;
  stream.series = "s";
  stream.version = "1";
  stream.seals = true;
  stream.refuses_empty = true;
  for (const std::string input : {"/archive", "/dump"}) {
    stream.file = input == "/dump" ? "dump" : "";
    const base::UniqueFd empty(::open((source_ + input).c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(code_of(repository_->store_stream(stream, empty.get(), {})), ErrorCode::kRefused);
    EXPECT_TRUE(must(repository_->series()).empty());
  }
  store("1");
  stream.version = "2";
  const base::UniqueFd empty(::open((source_ + "/dump").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(code_of(repository_->store_stream(stream, empty.get(), {})), ErrorCode::kRefused);
  ASSERT_TRUE(refused());
  EXPECT_TRUE(must(repository_->open_versions(series())).empty());
  stream.refuses_empty = false;
  must(seal_stored(*repository_, must(repository_->store_stream(stream, empty.get(), {}))));
  EXPECT_FALSE(refused());
}

}  // namespace
}  // namespace varve::test

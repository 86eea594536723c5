// SPDX-License-Identifier: Apache-2.0
// Tests repositories after a crash: copies of a repository's folder, made while it is in use.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/check.h"

namespace varve::test {
namespace {

class CrashTest : public testing::Test {
 protected:
  CrashTest() : path_(directory_.path() + "/r"), crashed_(directory_.path() + "/crashed") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    number_ = must(repository_->open_version(series_, "v.partial", folder())).number;
    version_ = must(repository_->writer(series_));
  }

  // The repository after a crash; the one that crashed goes on.
  std::unique_ptr<Repository> crash() {
    after_.reset();
    copy_crashed(path_, crashed_);
    return reopen(crashed_);
  }
  static std::string read_at_root(VersionWriter& version, std::string_view name) {
    return read_open(version, must(version.lookup(kRootIno, name)).ino);
  }

  TempDirectory directory_;
  std::string path_;
  std::string crashed_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Repository> after_;
  SeriesId series_{};
  VersionNumber number_{};
  std::shared_ptr<VersionWriter> version_;
};

TEST_F(CrashTest, SyncKeepsTailsOfFilesThatAreOpen) {
  std::vector<std::string> contents;
  std::vector<std::unique_ptr<OpenFile>> files;
  for (std::size_t i = 0; i < 40; ++i) {
    contents.push_back(noise(1 + i * 3001, i));
    const auto entry = must(version_->create(kRootIno, "f" + std::to_string(i), regular_file()));
    files.push_back(must(version_->open(entry.ino, true)));
    must(files.back()->write(0, base::as_bytes(contents[i])));
  }
  must(files[0]->sync());
  auto after = crash();
  const auto version = must(after->writer(series_));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    EXPECT_EQ(read_at_root(*version, "f" + std::to_string(i)), contents[i]) << i;
  }
  must(after->seal(series_, number_, ""));
  const auto reader = must(after->reader(series_, number_));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    EXPECT_EQ(read_sealed(*reader, "f" + std::to_string(i)), contents[i]) << i;
  }
}

TEST_F(CrashTest, SyncCoversFilesThatOtherFilesPushOut) {
  // Together the buffers exceed what may wait, so writing one file cuts others.
  constexpr std::size_t kStoredFiles = 70;
  std::vector<std::unique_ptr<OpenFile>> files;
  for (std::size_t i = 0; i < kStoredFiles; ++i) {
    const auto entry = must(version_->create(kRootIno, "f" + std::to_string(i), regular_file()));
    files.push_back(must(version_->open(entry.ino, true)));
  }
  const auto part = noise(150000, 1);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < kStoredFiles; ++i) {
      must(files[i]->write(static_cast<std::uint64_t>(round) * part.size(), base::as_bytes(part)));
    }
  }
  must(files[3]->sync());
  std::string wanted;
  for (int round = 0; round < 5; ++round) wanted += part;
  auto after = crash();
  const auto version = must(after->writer(series_));
  for (std::size_t i = 0; i < kStoredFiles; ++i) {
    ASSERT_TRUE(read_at_root(*version, "f" + std::to_string(i)) == wanted) << i;
  }
}

TEST_F(CrashTest, WhatWasNotSyncedIsLostWithoutHarm) {
  const auto kept = noise(50000, 1);
  write_file(*version_, kRootIno, "kept", kept);
  must(version_->sync());
  write_file(*version_, kRootIno, "lost", noise(6000000, 2));
  must(version_->unlink(kRootIno, "kept"));
  auto after = crash();
  auto version = must(after->writer(series_));
  EXPECT_EQ(code_of(version->lookup(kRootIno, "lost")), ErrorCode::kNotFound);
  EXPECT_EQ(read_at_root(*version, "kept"), kept);
  write_file(*version, kRootIno, "new", noise(70000, 3));
  must(after->seal(series_, number_, ""));
  const auto reader = must(after->reader(series_, number_));
  EXPECT_EQ(read_sealed(*reader, "kept"), kept);
  EXPECT_EQ(read_sealed(*reader, "new"), noise(70000, 3));
  CheckOptions options;
  options.verify_chunks = true;
  EXPECT_TRUE(must(after->check(options, {})).damages.empty());
}

TEST_F(CrashTest, StagedFileComesBackWithItsRecordedSize) {
  auto bytes = noise(100000, 1);
  const auto ino = write_file(*version_, kRootIno, "f", bytes);
  const auto file = must(version_->open(ino, true));
  must(file->write(10, base::as_bytes("changed")));
  bytes.replace(10, 7, "changed");
  must(file->sync());
  must(file->write(bytes.size(), base::as_bytes(noise(5000, 2))));  // In no record.
  auto after = crash();
  const auto version = must(after->writer(series_));
  EXPECT_EQ(read_at_root(*version, "f"), bytes);
  AttributeChange longer;
  longer.size = bytes.size() + 5000;
  must(version->set_attributes(ino, longer));
  EXPECT_TRUE(read_at_root(*version, "f") == bytes + std::string(5000, '\0'));
}

TEST_F(CrashTest, UnlinkedOpenFileIsGoneAfterwards) {
  const auto ino = write_file(*version_, kRootIno, "f", noise(5000, 1));
  const auto file = must(version_->open(ino, true));
  must(version_->unlink(kRootIno, "f"));
  must(file->write(5000, base::as_bytes("more")));
  must(version_->sync());
  EXPECT_EQ(read_all(*file, 5004), noise(5000, 1) + "more");
  auto after = crash();
  const auto version = must(after->writer(series_));
  EXPECT_EQ(code_of(version->get(ino)), ErrorCode::kStale);
  EXPECT_EQ(must(after->seal(series_, number_, "")).info.entries, 0U);
}

TEST_F(CrashTest, ProcessThatEndsWithoutClosingLeavesWhatItSynced) {
  version_.reset();
  repository_.reset();
  const auto bytes = noise(200001, 1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto repository = reopen(path_);
    const auto version = must(repository->writer(series_));
    const auto entry = must(version->create(kRootIno, "f", regular_file()));
    const auto file = must(version->open(entry.ino, true));
    must(file->write(0, base::as_bytes(bytes)));
    must(version->sync());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  repository_ = reopen(path_);
  EXPECT_EQ(read_at_root(*must(repository_->writer(series_)), "f"), bytes);
}

TEST_F(CrashTest, LostCatalogRecordsOfTheParentDoNotStopTheNextVersion) {
  write_file(*version_, kRootIno, "f", noise(40000, 1));
  must(repository_->seal(series_, number_, ""));
  version_.reset();
  repository_.reset();
  for (const auto& at : std::filesystem::recursive_directory_iterator(path_ + "/series")) {
    if (at.path().extension() == ".snap") std::filesystem::remove(at.path());
  }
  {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    const auto env = must(meta::Env::open(path_ + "/catalog", options));
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.erase(meta::catalog::kLocations,
                   meta::location_key(StoreId{static_cast<std::uint32_t>(series_)},
                                      ChunkId::make(number_, 0))));
    must(txn.commit());
  }
  for (int round = 0; round < 2; ++round) {
    repository_ = reopen(path_);
    const auto name = "w" + std::to_string(round);
    const auto next = must(repository_->open_version(series_, name, folder())).number;
    write_file(*must(repository_->writer(series_)), kRootIno, "f", noise(40000, 1));
    const auto outcome = must(repository_->seal(series_, next, ""));
    EXPECT_EQ(outcome.info.unique_bytes, 40000U) << "chunks that are lost were referred to";
    EXPECT_EQ(read_sealed(*must(repository_->reader(series_, next)), "f"), noise(40000, 1));
    repository_.reset();
    for (const auto& at : std::filesystem::recursive_directory_iterator(path_ + "/series")) {
      if (at.path().extension() == ".snap") std::filesystem::remove(at.path());
    }
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    const auto env = must(meta::Env::open(path_ + "/catalog", options));
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.erase(meta::catalog::kVersionChunks, meta::version_key(series_, next)));
    must(txn.commit());
  }
}

TEST_F(CrashTest, AbandoningThatWasCutShortIsFinishedLater) {
  const auto kept = noise(40000, 1);
  write_file(*version_, kRootIno, "f", kept);
  must(repository_->seal(series_, number_, ""));
  const auto before = must(repository_->stats());
  const auto gone = must(repository_->open_version(series_, "w", folder())).number;
  version_ = must(repository_->writer(series_));
  write_file(*version_, kRootIno, "f", noise(500000, 2));
  must(version_->sync());
  copy_crashed(path_, crashed_);
  {
    // As after the first of the two commits that abandoning makes.
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    const auto env = must(meta::Env::open(crashed_ + "/catalog", options));
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.erase(meta::catalog::kVersions, meta::version_key(series_, gone)));
    must(txn.commit());
  }
  const auto after = reopen(crashed_);
  EXPECT_GT(must(after->stats()).chunks, before.chunks);
  const auto next = must(after->open_version(series_, "x", folder()));
  EXPECT_EQ(must(after->stats()).chunks, before.chunks);
  EXPECT_EQ(must(after->stats()).container_bytes, before.container_bytes);
  write_file(*must(after->writer(series_)), kRootIno, "g", noise(500000, 3));
  must(after->seal(series_, next.number, ""));
  EXPECT_EQ(read_sealed(*must(after->reader(series_, next.number)), "g"), noise(500000, 3));
  EXPECT_EQ(read_sealed(*must(after->reader(series_, number_)), "f"), kept);
}

}  // namespace
}  // namespace varve::test

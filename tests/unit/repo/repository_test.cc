// SPDX-License-Identifier: Apache-2.0
// Versions of a repository: names and states, deduplicated storage, freed space.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "index/index_run.h"
#include "io/posix_file_system.h"
#include "support/index_samples.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

class RepositoryTest : public testing::Test {
 protected:
  RepositoryTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    restart();
    series_ = must(repository_->create_series("s")).id;
  }

  void restart() {
    repository_.reset();
    repository_ = reopen(path_);
  }
  VersionNumber open(const std::string& name) {
    return must(repository_->open_version(series_, name, folder())).number;
  }
  std::shared_ptr<VersionWriter> writer() { return must(repository_->writer(series_)); }
  SealOutcome seal(VersionNumber number, const std::string& name = "") {
    return must(repository_->seal(series_, number, name));
  }
  VersionNumber store(const std::string& name, const std::vector<std::string>& contents) {
    const auto number = open(name);
    for (std::size_t i = 0; i < contents.size(); ++i) {
      write_file(*writer(), kRootIno, "f" + std::to_string(i), contents[i]);
    }
    seal(number);
    return number;
  }
  std::string read(VersionNumber number, const std::string& file) {
    return read_sealed(*must(repository_->reader(series_, number)), file);
  }
  void expect_no_damage() {
    CheckOptions options;
    options.verify_chunks = true;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
};

TEST_F(RepositoryTest, SealedVersionGivesBytesAndMetadataAlsoAfterReopening) {
  const auto bytes = noise(300000, 1);
  const auto number = open("v1.partial");
  const auto version = writer();
  NewFile made = regular_file(0604);
  made.uid = 12;
  made.gid = 34;
  const auto top = must(version->create(kRootIno, "d", folder(0700)));
  const auto entry = must(version->create(top.ino, "f", made));
  must(must(version->open(entry.ino, true))->write(0, base::as_bytes(bytes)));
  must(version->set_xattr(entry.ino, "user.note", "varve", XattrMode::kAny));
  AttributeChange change;
  change.mtime = Timestamp{-5, 999999999};
  must(version->set_attributes(entry.ino, change));
  must(version->link(entry.ino, kRootIno, "again"));
  const auto outcome = seal(number);
  EXPECT_EQ(outcome.info.name, "v1");
  EXPECT_EQ(outcome.info.state, VersionState::kSealed);
  EXPECT_EQ(outcome.info.entries, 3U);
  EXPECT_EQ(outcome.info.logical_bytes, bytes.size());
  EXPECT_EQ(outcome.info.unique_bytes, bytes.size());
  for (int again = 0; again < 2; ++again, restart()) {
    const auto reader = must(repository_->reader(series_, number));
    const Rank rank = find(*reader, "d/f");
    const auto sealed = must(reader->get(rank));
    EXPECT_EQ(sealed.attributes.mode, S_IFREG | 0604U);
    EXPECT_EQ(sealed.attributes.uid, 12U);
    EXPECT_EQ(sealed.attributes.gid, 34U);
    EXPECT_EQ(sealed.attributes.nlink, 2U);
    EXPECT_EQ(sealed.attributes.mtime, (Timestamp{-5, 999999999}));
    EXPECT_EQ(sealed.attributes.ctime, reader->info().sealed_at);
    EXPECT_EQ(must(reader->xattrs(rank)), (Xattrs{{"user.note", "varve"}}));
    EXPECT_EQ(sealed.link_group, must(reader->get(find(*reader, "again"))).link_group);
    EXPECT_EQ(read_sealed(*reader, "d/f"), bytes);
    EXPECT_EQ(read_sealed(*reader, "again"), bytes);
    EXPECT_EQ(must(reader->get(find(*reader, "d"))).attributes.mode, S_IFDIR | 0700U);
  }
}

TEST_F(RepositoryTest, SameFilesAgainStoreNothingNew) {
  const std::vector<std::string> contents = {noise(200000, 1), noise(5000, 2), noise(1, 3), ""};
  store("v1", contents);
  const auto before = must(repository_->stats());
  restart();
  const auto second = store("v2", contents);
  const auto info = must(repository_->find_version(series_, "v2"));
  EXPECT_EQ(info.unique_bytes, 0U);
  EXPECT_EQ(info.stored_bytes, 0U);
  EXPECT_EQ(info.logical_bytes, 205001U);
  EXPECT_EQ(must(repository_->stats()).container_bytes, before.container_bytes);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    EXPECT_EQ(read(second, "f" + std::to_string(i)), contents[i]);
  }
}

TEST_F(RepositoryTest, VersionWithFewerFilesLeavesTheOlderOneWhole) {
  const std::vector<std::string> contents = {noise(150000, 1), noise(90000, 2)};
  const auto first = store("v1", contents);
  const auto second = store("v2", {contents[0]});
  const auto third = store("v3", {contents[0], contents[1]});
  const auto fourth = store("v4", {contents[0]});
  const auto fifth = store("v5", {contents[0]});
  const auto sixth = store("v6", {contents[0], contents[1]});
  for (const char* name : {"v7", "v8", "v9", "v10"}) store(name, {contents[0]});
  const auto last = store("v11", {contents[0], contents[1]});
  EXPECT_EQ(must(repository_->reader(series_, second))->info().entries, 1U);
  EXPECT_EQ(read(first, "f1"), contents[1]);
  EXPECT_EQ(read(third, "f1"), contents[1]);
  EXPECT_EQ(read(sixth, "f1"), contents[1]);
  EXPECT_EQ(read(last, "f1"), contents[1]);
  EXPECT_EQ(must(repository_->reader(series_, fourth))->info().entries, 1U);
  EXPECT_EQ(must(repository_->reader(series_, fifth))->info().entries, 1U);
  // The lookup covers the chunks of the window: chunks that four versions did without are stored
  // again.
  EXPECT_EQ(must(repository_->find_version(series_, "v3")).unique_bytes, 0U);
  EXPECT_EQ(must(repository_->find_version(series_, "v6")).unique_bytes, 0U);
  EXPECT_EQ(must(repository_->find_version(series_, "v11")).unique_bytes, 90000U);
  expect_no_damage();
}

TEST_F(RepositoryTest, VersionNamesFollowTheirRules) {
  EXPECT_EQ(code_of(repository_->find_version(series_, "latest")), ErrorCode::kNotFound);
  const auto first = open("a.partial");
  EXPECT_EQ(code_of(repository_->find_version(series_, "latest")), ErrorCode::kNotFound);
  const auto try_open = [&](std::string_view name) {
    return code_of(repository_->open_version(series_, name, folder()));
  };
  EXPECT_EQ(try_open("b"), ErrorCode::kBusy);
  EXPECT_EQ(try_open("a.partial"), ErrorCode::kExists);
  EXPECT_EQ(try_open("latest"), ErrorCode::kExists);
  EXPECT_EQ(try_open(""), ErrorCode::kInvalid);
  EXPECT_EQ(try_open(".."), ErrorCode::kInvalid);
  EXPECT_EQ(try_open("x/y"), ErrorCode::kInvalid);
  EXPECT_EQ(try_open(std::string(256, 'n')), ErrorCode::kNameTooLong);
  EXPECT_EQ(code_of(repository_->rename_version(series_, first, "a")), ErrorCode::kInvalid);
  must(repository_->rename_version(series_, first, "b.partial"));
  EXPECT_EQ(writer()->info().name, "b.partial");
  EXPECT_EQ(code_of(repository_->seal(series_, first, "c.partial")), ErrorCode::kNotPermitted);
  EXPECT_EQ(code_of(repository_->reader(series_, first)), ErrorCode::kInvalid);
  seal(first, "c");
  EXPECT_EQ(code_of(repository_->seal(series_, first, "d")), ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(repository_->writer(series_)), ErrorCode::kNotFound);
  EXPECT_EQ(try_open("c"), ErrorCode::kExists);
  EXPECT_EQ(code_of(repository_->rename_version(series_, first, "c.partial")),
            ErrorCode::kNotPermitted);
  EXPECT_EQ(code_of(repository_->rename_version(series_, first, "latest")), ErrorCode::kExists);
  must(repository_->rename_version(series_, first, "daily.0"));
  EXPECT_EQ(must(repository_->reader(series_, first))->info().name, "daily.0");
  const auto second = open("naive");
  EXPECT_EQ(must(repository_->find_version(series_, "latest")).number, first);
  EXPECT_EQ(code_of(repository_->seal(series_, second, "daily.0")), ErrorCode::kExists);
  EXPECT_EQ(writer()->info().number, second);  // The open version continues unchanged.
  seal(second);
  EXPECT_EQ(must(repository_->find_version(series_, "latest")).number, second);
  restart();
  EXPECT_EQ(must(repository_->find_version(series_, "daily.0")).number, first);
}

TEST_F(RepositoryTest, NextVersionSealsANaiveOneUnlessItIsWritten) {
  const auto first = open("one");
  const auto ino = write_file(*writer(), kRootIno, "f", "text");
  auto file = must(writer()->open(ino, true));
  EXPECT_EQ(code_of(repository_->open_version(series_, "two", folder())), ErrorCode::kBusy);
  EXPECT_EQ(code_of(repository_->seal(series_, first, "")), ErrorCode::kBusy);
  EXPECT_EQ(code_of(repository_->abandon_version(series_, first, true)), ErrorCode::kBusy);
  must(file->write(4, base::as_bytes(" more")));
  file.reset();
  const auto second = open("two");
  EXPECT_EQ(must(repository_->find_version(series_, "one")).state, VersionState::kSealed);
  EXPECT_EQ(read(first, "f"), "text more");
  EXPECT_EQ(writer()->info().number, second);
}

TEST_F(RepositoryTest, NextVersionDoesNotSealAnEmptyOne) {
  const auto first = open("one");
  EXPECT_EQ(code_of(repository_->open_version(series_, "two", folder())), ErrorCode::kBusy);
  EXPECT_EQ(code_of(repository_->version_to_end(series_, "two", VersionNumber{})),
            ErrorCode::kBusy);
  EXPECT_EQ(must(repository_->find_version(series_, "one")).state, VersionState::kOpen);
  must(repository_->abandon_version(series_, first, false));
  EXPECT_FALSE(must(repository_->version_to_end(series_, "two", VersionNumber{})).has_value());
}

TEST_F(RepositoryTest, NextVersionDoesNotSealOneThatWasJustWritten) {
  auto options = quiet_options();
  options.autoseal_s = 60;
  repository_.reset();
  repository_ = reopen(path_, options);
  open("one");
  write_file(*writer(), kRootIno, "f", "text");
  EXPECT_EQ(code_of(repository_->open_version(series_, "two", folder())), ErrorCode::kBusy);
  must(writer()->sync());
  EXPECT_EQ(code_of(repository_->open_version(series_, "two", folder())), ErrorCode::kBusy);
  const auto shown = must(repository_->open_versions(series_));
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].entries, 1U);
  repository_.reset();
  repository_ = reopen(path_, options);
  EXPECT_EQ(code_of(repository_->open_version(series_, "two", folder())), ErrorCode::kBusy);
  options.read_only = true;
  EXPECT_EQ(must(must(Repository::open(path_, options))->open_versions(series_))[0].entries, 1U);
}

TEST_F(RepositoryTest, OneNameGoesToOneOfManyThatWantIt) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "v" + std::to_string(round);
    std::atomic<int> opened = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const auto made = repository_->open_version(series_, name, folder());
        if (made) {
          ++opened;
        } else {
          EXPECT_EQ(made.error().code(), ErrorCode::kExists);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(opened, 1) << name;
    write_file(*writer(), kRootIno, "f", "text");
  }
}

TEST_F(RepositoryTest, AbandonedVersionGivesItsSpaceBack) {
  const auto first = store("v1", {noise(100000, 1)});
  const auto before = must(repository_->stats());
  const auto gone = open("v2.partial");
  const auto ino = write_file(*writer(), kRootIno, "f", noise(3000000, 2));
  must(writer()->sync());
  EXPECT_EQ(read_open(*writer(), ino), noise(3000000, 2));  // The container headers are cached now.
  EXPECT_GT(must(repository_->stats()).container_bytes, before.container_bytes);
  EXPECT_EQ(code_of(repository_->abandon_version(series_, gone, false)), ErrorCode::kNotEmpty);
  must(repository_->abandon_version(series_, gone, true));
  EXPECT_EQ(must(repository_->stats()).container_bytes, before.container_bytes);
  EXPECT_EQ(must(repository_->stats()).chunks, before.chunks);
  EXPECT_EQ(code_of(repository_->writer(series_)), ErrorCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(path_ + "/staging"));
  const auto next = store("v2", {noise(2500000, 3)});
  EXPECT_GT(next, gone);
  EXPECT_EQ(read(next, "f0"), noise(2500000, 3));
  EXPECT_EQ(read(first, "f0"), noise(100000, 1));
  restart();
  EXPECT_EQ(read(next, "f0"), noise(2500000, 3));
  EXPECT_EQ(read(first, "f0"), noise(100000, 1));
  expect_no_damage();
  EXPECT_EQ(code_of(repository_->abandon_version(series_, next, true)), ErrorCode::kReadOnly);
}

TEST_F(RepositoryTest, HandleThatOutlivesItsAbandonedVersionDoesNoHarm) {
  const auto gone = open("v1");
  const auto version = writer();
  const auto ino = write_file(*version, kRootIno, "f", noise(100000, 1));
  const auto file = must(version->open(ino, false));
  must(repository_->abandon_version(series_, gone, true));
  const auto next = open("v2");
  std::vector<std::byte> out(1000);
  EXPECT_FALSE(file->read(0, out).has_value());
  EXPECT_EQ(code_of(version->create(kRootIno, "g", regular_file())), ErrorCode::kReadOnly);
  write_file(*writer(), kRootIno, "f", noise(100000, 2));
  seal(next);
  EXPECT_EQ(read(next, "f"), noise(100000, 2));
}

TEST_F(RepositoryTest, StagedFileBeingCutHoldsTheSealUp) {
  for (int round = 0; round < 10; ++round) {
    const auto number = open("v" + std::to_string(round) + ".partial");
    auto bytes = noise(2000000, static_cast<std::uint64_t>(round));
    const auto ino = write_file(*writer(), kRootIno, "f", bytes);
    {
      const auto file = must(writer()->open(ino, true));
      must(file->write(5, base::as_bytes("changed")));  // Not at the end, so it goes to staging.
    }
    bytes.replace(5, 7, "changed");
    seal(number);
    EXPECT_EQ(read(number, "f"), bytes);
  }
}

TEST_F(RepositoryTest, IndexOfTheFirstLayoutIsRead) {
  const std::vector<std::string> contents = {noise(300000, 1), noise(50000, 2)};
  const auto first = store("v0", contents);
  repository_.reset();
  const auto files = io::make_posix_file_system();
  const index::RunFolder folder{files.get(), path_ + "/series/00000001", series_,
                                store::index_run_name};
  const auto snapshot = folder.directory + "/" + store::snapshot_name(first);
  const auto runs =
      must(index::decode_snapshot(must(files->read_file(snapshot, 1U << 20)), series_, first));
  ASSERT_EQ(runs.size(), 1U);
  {
    const auto run = must(index::IndexRun::open(folder, runs.front()));
    std::vector<index::Entry> entries;
    index::RunScanner scanner(*run);
    for (auto at = must(scanner.next()); !at.is_empty(); at = must(scanner.next())) {
      entries.push_back(at);
    }
    const auto old = index::old_snapshot(series_, first, run->covered(), entries);
    must(files->write_file_atomically(folder.directory, store::snapshot_name(first),
                                      base::as_bytes(old)));
    must(files->remove(run->path()));
  }
  restart();
  expect_no_damage();
  testing::internal::CaptureStderr();
  const auto second = store("v1", contents);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(must(repository_->find_version(series_, "v1")).unique_bytes, 0U);
  EXPECT_EQ(read(second, "f0"), contents[0]);
  expect_no_damage();
}

TEST_F(RepositoryTest, IndexSnapshotIsMadeAnewWhereItIsMissingOrDamaged) {
  const std::vector<std::string> contents = {noise(300000, 1), noise(50000, 2)};
  store("v0", contents);
  for (int damage = 0; damage < 5; ++damage) {
    repository_.reset();
    std::string snapshot;
    for (const auto& at : std::filesystem::recursive_directory_iterator(path_ + "/series")) {
      if (at.path().extension() == (damage < 2 ? ".snap" : ".run")) snapshot = at.path();
    }
    ASSERT_FALSE(snapshot.empty());
    if (damage == 0 || damage == 2) {
      std::filesystem::remove(snapshot);
    } else {
      std::fstream file(snapshot, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(damage == 4 ? 5000 : 30);  // In a block of entries, or in the header.
      file.put('!');
    }
    restart();
    const auto name = "v" + std::to_string(damage + 1);
    const auto number = store(name, contents);
    EXPECT_EQ(must(repository_->find_version(series_, name)).unique_bytes, 0U);
    EXPECT_EQ(read(number, "f0"), contents[0]);
    expect_no_damage();
  }
}

TEST_F(RepositoryTest, ReadOnlyUseBesideTheWriterSeesSealedVersions) {
  const auto first = store("v1", {noise(50000, 1)});
  open("v2");
  OpenOptions options;
  options.read_only = true;
  const auto beside = reopen(path_, options);
  EXPECT_EQ(must(beside->versions(series_)).size(), 1U);
  EXPECT_EQ(must(beside->find_version(series_, "latest")).number, first);
  EXPECT_EQ(read_sealed(*must(beside->reader(series_, first)), "f0"), noise(50000, 1));
  EXPECT_EQ(code_of(beside->create_series("x")), ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(beside->open_version(series_, "x", folder())), ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(beside->writer(series_)), ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(beside->rename_version(series_, first, "x")), ErrorCode::kReadOnly);
  // Versions that are sealed later are visible without opening again.
  const auto number = writer()->info().number;
  write_file(*writer(), kRootIno, "f", "later");
  seal(number);
  EXPECT_EQ(read_sealed(*must(beside->reader(series_, number)), "f"), "later");
}

TEST_F(RepositoryTest, SecondWriterIsRefused) {
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kLocked);
  repository_.reset();
  EXPECT_TRUE(Repository::open(path_, quiet_options()).has_value());
}

TEST_F(RepositoryTest, WhatIsNoRepositoryIsSaidSo) {
  EXPECT_EQ(code_of(Repository::open(directory_.path(), quiet_options())),
            ErrorCode::kNoRepository);
  EXPECT_EQ(code_of(Repository::open(path_ + "/nothing", quiet_options())),
            ErrorCode::kNoRepository);
  EXPECT_EQ(code_of(Repository::create(path_, {})), ErrorCode::kExists);
  EXPECT_EQ(code_of(Repository::create(directory_.path(), {})), ErrorCode::kNotEmpty);
  repository_.reset();
  std::filesystem::rename(path_ + "/catalog", path_ + "/lost");
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kCorrupt);
}

TEST_F(RepositoryTest, ALateUseOfARemovedSeriesMakesNoFolder) {
  const auto gone = must(repository_->create_series("t")).id;
  must(repository_->remove_series("t"));
  EXPECT_EQ(code_of(repository_->version_usage(gone)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(repository_->arrange(gone, {})), ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/series/00000002"));
}

TEST_F(RepositoryTest, RemovedSeriesNameCanBeUsedAgain) {
  EXPECT_EQ(code_of(repository_->create_series("s")), ErrorCode::kExists);
  const auto gone = open("v");
  EXPECT_EQ(code_of(repository_->remove_series("s")), ErrorCode::kNotEmpty);
  write_file(*writer(), kRootIno, "f", noise(10000, 1));
  must(writer()->sync());
  must(repository_->abandon_version(series_, gone, true));
  must(repository_->remove_series("s"));
  EXPECT_EQ(code_of(repository_->find_series("s")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(repository_->open_version(series_, "v", folder())), ErrorCode::kNotFound);
  series_ = must(repository_->create_series("s")).id;
  const auto number = store("v", {noise(50000, 2)});
  EXPECT_EQ(read(number, "f0"), noise(50000, 2));
  restart();
  EXPECT_EQ(read(number, "f0"), noise(50000, 2));
}

TEST_F(RepositoryTest, SeriesAreIndependent) {
  const auto other = must(repository_->create_series("t")).id;
  open("v.partial");
  const auto in_other = must(repository_->open_version(other, "v.partial", folder()));
  const auto second = must(repository_->writer(other));
  write_file(*writer(), kRootIno, "f", "in s");
  write_file(*second, kRootIno, "f", "in t");
  must(repository_->seal(other, in_other.number, ""));
  EXPECT_EQ(read_sealed(*must(repository_->reader(other, in_other.number)), "f"), "in t");
  EXPECT_EQ(code_of(repository_->find_version(series_, "latest")), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace varve::test

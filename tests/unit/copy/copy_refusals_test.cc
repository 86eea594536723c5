// SPDX-License-Identifier: Apache-2.0
// Targets and sources that a copy refuses, and copies that change nothing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "copy/copy_fixture.h"

namespace varve {
namespace {

using test::must;
using test::noise;

using CopyRefusals = test::CopyTest;

TEST_F(CopyRefusals, OtherVersionsInTheTargetAreRefused) {
  open("one");
  seal();
  copy();
  const auto id = series(*target_);
  must(target_->open_version(id, "own.partial", test::folder()));
  must(target_->seal(id, must(target_->writer(id))->info().number, ""));
  open("two");
  seal();
  const auto report = must(try_copy());
  EXPECT_EQ(report.copied, 0U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("s/own"), std::string::npos) << report.problems[0];
}

TEST_F(CopyRefusals, OpenVersionOfAnotherUserIsNotDropped) {
  open("one");
  seal();
  copy();
  const auto id = series(*target_);
  must(target_->open_version(id, "own.partial", test::folder()));
  open("two");
  seal();
  const auto report = must(try_copy());
  EXPECT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(must(target_->writer(id))->info().name, "own.partial");
}

TEST_F(CopyRefusals, UnfinishedCopyThatTheUserSealsIsNoCopy) {
  auto writer = open("one");
  for (int i = 0; i < 3; ++i) {
    test::write_file(*writer, kRootIno, "f" + std::to_string(i), noise(3000000, i));
  }
  seal();
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    progress_ = [](const TransferProgress&) { return false; };
    EXPECT_EQ(test::code_of(try_copy()), ErrorCode::kInterrupted);
    progress_ = {};
    const auto id = series(*target_);
    const auto unfinished = must(target_->writer(id))->info();
    const auto other = target_->open_version(id, "own", test::folder());
    ASSERT_EQ(test::code_of(other), ErrorCode::kBusy);
    EXPECT_NE(other.error().message().find("varve copy"), std::string::npos);
    const auto sealed = must(target_->seal(id, unfinished.number, "")).info;
    EXPECT_FALSE(sealed.origin);
    EXPECT_EQ(copy().copied, 1U);
    EXPECT_EQ(copy().present, static_cast<std::size_t>(round + 1));
    expect_equal("one");
    if (round == 0) {
      writer = open("two");
      for (int i = 0; i < 3; ++i) {
        test::write_file(*writer, kRootIno, "g" + std::to_string(i), noise(3000000, 10 + i));
      }
      seal();
    }
  }
  expect_equal("two");
  EXPECT_EQ(copy({.prune = true}).deleted, 0U);
  EXPECT_EQ(names(*target_).size(), 4U);
}

TEST_F(CopyRefusals, SealedRemnantUnderAnotherNameIsRefused) {
  auto writer = open("one");
  for (int i = 0; i < 3; ++i) {
    test::write_file(*writer, kRootIno, "f" + std::to_string(i), noise(3000000, i));
  }
  seal();
  progress_ = [](const TransferProgress&) { return false; };
  EXPECT_EQ(test::code_of(try_copy()), ErrorCode::kInterrupted);
  progress_ = {};
  const auto id = series(*target_);
  const auto sealed = must(target_->seal(id, must(target_->writer(id))->info().number, "one")).info;
  const auto report = must(try_copy());
  EXPECT_EQ(report.present, 0U);
  EXPECT_EQ(report.problems.size(), 1U);
  must(target_->delete_versions(id, {sealed.number}));
  EXPECT_EQ(copy().copied, 1U);
  expect_equal("one");
}

TEST_F(CopyRefusals, CopiesOfAnotherRepositoryAreRefused) {
  open("one");
  seal();
  copy();
  const std::string other_path = place_.path() + "/other";
  must(Repository::create(other_path, test::small_chunks(Codec::kNone)));
  source_ = test::reopen(other_path);
  open("one");
  seal();
  EXPECT_EQ(test::code_of(try_copy()), ErrorCode::kInvalid);
}

TEST_F(CopyRefusals, TheSourceItselfIsNoTarget) {
  const auto target = copy_target(*source_);
  EXPECT_EQ(test::code_of(copy_versions(*source_, target.get(), {}, {})), ErrorCode::kInvalid);
}

TEST_F(CopyRefusals, SourceThatWasSetBackIsRefused) {
  open("one");
  seal();
  const std::string older = place_.path() + "/older";
  source_.reset();
  test::copy_crashed(source_path_, older);
  source_ = test::reopen(source_path_);
  auto writer = open("two");
  test::write_file(*writer, kRootIno, "f", "lost");
  seal();
  open("three");
  seal();
  copy();
  source_ = test::reopen(older);
  writer = open("two");
  test::write_file(*writer, kRootIno, "f", "other");
  seal();
  const auto report = must(try_copy({.prune = true}));
  EXPECT_EQ(report.deleted, 0U);
  EXPECT_EQ(report.copied, 0U);
  EXPECT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(names(*target_), (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(CopyRefusals, PruneWithASourceOfAnOlderStateDeletesNothing) {
  open("one");
  seal();
  const std::string older = place_.path() + "/older";
  source_.reset();
  test::copy_crashed(source_path_, older);
  source_ = test::reopen(source_path_);
  open("two");
  seal();
  open("three");
  seal();
  copy();
  source_ = test::reopen(older);
  const auto pruned = must(try_copy({.prune = true}));
  EXPECT_EQ(pruned.deleted, 0U);
  ASSERT_EQ(pruned.problems.size(), 1U);
  EXPECT_NE(pruned.problems[0].find("s/three"), std::string::npos) << pruned.problems[0];
  EXPECT_EQ(copy().kept, 2U);
  EXPECT_EQ(names(*target_), (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(CopyRefusals, TargetWithOtherChunksGetsTheSameFiles) {
  target_.reset();
  std::filesystem::remove_all(target_path_);
  must(Repository::create(target_path_, RepositoryParameters{}));
  target_ = test::reopen(target_path_);
  auto writer = open("one");
  test::write_file(*writer, kRootIno, "f", noise(500000, 1));
  seal();
  copy();
  writer = open("two");
  {
    const auto handle = must(writer->open(must(writer->lookup(kRootIno, "f")).ino, true));
    must(handle->write(250000, base::as_bytes("x")));
  }
  seal();
  const auto report = copy();
  expect_equal("one");
  expect_equal("two");
  EXPECT_LT(report.sent_bytes, 100000U);
}

/// Damages the middle of the largest segment.
void damage_segment(const std::string& repository) {
  std::filesystem::path largest;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(repository)) {
    if (entry.path().extension() != ".seg") continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) {
      largest = entry.path();
    }
  }
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(largest) / 2));
  file << "damage";
}

TEST_F(CopyRefusals, DamagedVersionIsSkippedAndLaterOnesAreCopied) {
  auto writer = open("one");
  test::write_file(*writer, kRootIno, "good", noise(10000, 1));
  seal();
  writer = open("two");
  const auto bad = test::write_file(*writer, kRootIno, "bad", noise(2000000, 2));
  must(writer->link(bad, kRootIno, "also"));
  seal();
  writer = open("three");
  must(writer->unlink(kRootIno, "bad"));
  must(writer->unlink(kRootIno, "also"));
  test::write_file(*writer, kRootIno, "new", noise(1000, 3));
  seal();
  must(source_->close());
  source_.reset();
  damage_segment(source_path_);
  source_ = test::reopen(source_path_);
  const auto report = must(try_copy());
  EXPECT_EQ(report.copied, 2U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("s/two: skipped"), std::string::npos) << report.problems[0];
  EXPECT_EQ(names(*target_), (std::vector<std::string>{"one", "three"}));
  expect_equal("one");
  expect_equal("three");
  EXPECT_EQ(must(try_copy()).passed_over, 1U);
}

TEST_F(CopyRefusals, IncompleteCopyLacksAllNamesOfDamagedFiles) {
  auto writer = open("one");
  const auto folder = must(writer->create(kRootIno, "d", test::folder())).ino;
  const auto bad = test::write_file(*writer, folder, "bad", noise(2000000, 2));
  must(writer->link(bad, kRootIno, "also"));
  test::write_file(*writer, kRootIno, "good", noise(10000, 1));
  seal();
  must(source_->close());
  source_.reset();
  damage_segment(source_path_);
  source_ = test::reopen(source_path_);
  const auto report = must(try_copy({.incomplete = true}));
  EXPECT_EQ(report.copied, 1U);
  ASSERT_FALSE(report.problems.empty());
  const auto copied = must(target_->find_version(series(*target_), "one"));
  EXPECT_FALSE(copied.origin->whole);
  const auto reader = must(target_->reader(copied.series, copied.number));
  EXPECT_EQ(test::read_sealed(*reader, "good"), noise(10000, 1));
  EXPECT_EQ(test::code_of(reader->lookup(0, "also")), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of(reader->lookup(test::find(*reader, "d"), "bad")), ErrorCode::kNotFound);
}

TEST_F(CopyRefusals, DryRunChangesNothing) {
  open("one");
  seal();
  const auto target = copy_target(*target_);
  const auto report = must(copy_versions(*source_, target.get(), {.dry_run = true}, {}));
  EXPECT_EQ(report.copied, 1U);
  EXPECT_TRUE(must(target_->series()).empty());
  EXPECT_EQ(must(copy_versions(*source_, nullptr, {.dry_run = true}, {})).copied, 1U);
}

TEST_F(CopyRefusals, CheckComparesAllVersions) {
  auto writer = open("one");
  test::write_file(*writer, kRootIno, "f", noise(500000, 1));
  seal();
  copy();
  int checked = 0;
  const auto target = copy_target(*target_);
  const auto report = must(copy_versions(*source_, target.get(), {.check_all = true},
                                         {{}, [&](const CopyEvent& event) {
                                            checked += event.action == CopyAction::kChecked ? 1 : 0;
                                          }}));
  EXPECT_EQ(checked, 1);
  EXPECT_TRUE(report.problems.empty());
}

}  // namespace
}  // namespace varve

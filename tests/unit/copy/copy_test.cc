// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catalog/version_origin.h"
#include "copy/copy_fixture.h"
#include "varve/beside.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::CopyTest;
using test::must;
using test::noise;

TEST_F(CopyTest, CopyIsTheSameTreeWithTheSameTimes) {
  auto writer = open("one");
  const auto directory = must(writer->create(kRootIno, "d", test::folder(02750))).ino;
  const auto file = test::write_file(*writer, directory, "big", noise(300000, 1));
  must(writer->link(file, kRootIno, "linked"));
  must(writer->set_xattr(file, "user.a", "b", XattrMode::kAny));
  must(writer->set_xattr(kRootIno, "user.root", "r", XattrMode::kAny));
  NewFile other;
  other.mode = S_IFLNK | 0777;
  other.symlink_target = "d/big";
  must(writer->create(kRootIno, "l", other));
  other = {};
  other.mode = S_IFCHR | 0600;
  other.rdev = 0x103;
  must(writer->create(kRootIno, "null", other));
  other = {};
  other.mode = S_IFIFO | 0600;
  must(writer->create(kRootIno, "fifo", other));
  {
    const auto sparse = must(writer->create(kRootIno, "sparse", test::regular_file(04755))).ino;
    const auto handle = must(writer->open(sparse, true));
    must(handle->write(1U << 20, base::as_bytes(noise(5000, 2))));
    must(handle->allocate(3U << 20, 1U << 20, AllocateMode::kExtend));
  }
  AttributeChange change;
  change.uid = 7;
  change.gid = 8;
  change.mode = 04711;
  change.mtime = Timestamp{1234567, 89};
  must(writer->set_attributes(file, change));
  AttributeChange time;
  time.mtime = Timestamp{99, 9};
  must(writer->set_attributes(kRootIno, time));
  must(claim_time(*source_, writer->info(), {1000, 5}));
  const auto number = writer->info().number;
  must(writer->set_xattr(kRootIno, catalog::kIncompleteAttribute,
                         catalog::encode_incomplete(number, 3), XattrMode::kAny));
  const auto sealed = seal();
  const auto report = copy();
  EXPECT_EQ(report.copied, 1U);
  expect_equal("one");
  const auto copied = must(target_->find_version(series(*target_), "one"));
  EXPECT_EQ(copied.sealed_at, sealed.sealed_at);
  EXPECT_EQ(copied.claimed_at, (Timestamp{1000, 5}));
  EXPECT_EQ(copied.problems, 3U);
  EXPECT_EQ(copied.entries, sealed.entries);
  EXPECT_EQ(copied.logical_bytes, sealed.logical_bytes);
  ASSERT_TRUE(copied.origin);
  EXPECT_EQ(copied.origin->repository, source_->id());
  EXPECT_EQ(copied.origin->number, sealed.number);
  EXPECT_TRUE(must(target_->open_versions(series(*target_))).empty());
}

TEST_F(CopyTest, ClaimOfTheStartOf1970IsCopied) {
  auto writer = open("one");
  must(claim_time(*source_, writer->info(), {}));
  seal();
  copy();
  EXPECT_EQ(must(target_->find_version(series(*target_), "one")).claimed_at, Timestamp{});
}

// The copy of a version starts as a clone of the copy before.
TEST_F(CopyTest, WholeVersionAfterAnIncompleteOneHasNoMark) {
  auto writer = open("one");
  must(writer->set_xattr(kRootIno, catalog::kIncompleteAttribute,
                         catalog::encode_incomplete(writer->info().number, 3), XattrMode::kAny));
  seal();
  open("two");
  EXPECT_EQ(seal().problems, 3U);
  writer = open("three", false);
  test::write_file(*writer, kRootIno, "file", noise(20000, 1));
  EXPECT_EQ(seal().problems, 0U);
  EXPECT_EQ(copy().copied, 3U);
  const auto problems = [&](const std::string& name) {
    return must(target_->find_version(series(*target_), name)).problems;
  };
  EXPECT_EQ(problems("one"), 3U);
  EXPECT_EQ(problems("two"), 3U);
  EXPECT_EQ(problems("three"), 0U);
  expect_equal("three");
}

TEST_F(CopyTest, SecondCopySendsOnlyWhatChanged) {
  auto writer = open("one");
  const auto directory = must(writer->create(kRootIno, "d", test::folder())).ino;
  for (int i = 0; i < 50; ++i) {
    test::write_file(*writer, directory, "f" + std::to_string(i), noise(20000, 100U + i));
  }
  const auto image = test::write_file(*writer, kRootIno, "image", noise(2000000, 7));
  (void)image;
  seal();
  copy();
  EXPECT_EQ(copy().copied, 0U);
  writer = open("two");
  {
    const auto entry = must(writer->lookup(kRootIno, "image"));
    const auto handle = must(writer->open(entry.ino, true));
    must(handle->write(1000000, base::as_bytes(noise(100, 8))));
  }
  const auto d = must(writer->lookup(kRootIno, "d")).ino;
  must(writer->unlink(d, "f3"));
  must(writer->rename(d, "f4", kRootIno, "moved", RenameMode::kReplace));
  test::write_file(*writer, d, "new", noise(10000, 9));
  seal();
  const auto report = copy();
  expect_equal("one");
  expect_equal("two");
  EXPECT_LT(report.changes, 15U);
  // The new file and a chunk of the image or two; the moved file is known to the target.
  EXPECT_GT(report.sent_bytes, 10000U);
  EXPECT_LT(report.sent_bytes, 10000U + 4 * 16384U);
}

TEST_F(CopyTest, ChangedHardLinksAreTheSameGroups) {
  auto writer = open("one");
  const auto a = must(writer->create(kRootIno, "a", test::folder())).ino;
  const auto c = must(writer->create(kRootIno, "c", test::folder())).ino;
  const auto first = test::write_file(*writer, a, "x", noise(5000, 1));
  must(writer->link(first, a, "y"));
  const auto second = test::write_file(*writer, c, "x", noise(6000, 2));
  must(writer->link(second, c, "y"));
  seal();
  copy();
  writer = open("two");  // a/y becomes a name of c/x, and c/y one of a/x.
  must(writer->unlink(must(writer->lookup(kRootIno, "a")).ino, "y"));
  must(writer->unlink(must(writer->lookup(kRootIno, "c")).ino, "y"));
  const auto a2 = must(writer->lookup(kRootIno, "a")).ino;
  const auto c2 = must(writer->lookup(kRootIno, "c")).ino;
  must(writer->link(must(writer->lookup(c2, "x")).ino, a2, "y"));
  must(writer->link(must(writer->lookup(a2, "x")).ino, c2, "y"));
  seal();
  copy();
  expect_equal("two");
  writer = open("three");  // A name is unlinked, and the file written through the other.
  const auto a3 = must(writer->lookup(kRootIno, "a")).ino;
  must(writer->unlink(a3, "y"));
  {
    const auto c3 = must(writer->lookup(kRootIno, "c")).ino;
    const auto handle = must(writer->open(must(writer->lookup(c3, "x")).ino, true));
    must(handle->write(100, base::as_bytes("changed")));
  }
  seal();
  copy();
  expect_equal("two");
  expect_equal("three");
}

TEST_F(CopyTest, TypesThatChangeAreReplaced) {
  auto writer = open("one");
  test::write_file(*writer, kRootIno, "file", "f");
  const auto d = must(writer->create(kRootIno, "folder", test::folder())).ino;
  test::write_file(*writer, d, "inside", noise(9000, 4));
  seal();
  copy();
  writer = open("two");
  must(writer->unlink(kRootIno, "file"));
  const auto made = must(writer->create(kRootIno, "file", test::folder())).ino;
  test::write_file(*writer, made, "inside", noise(9000, 4));
  const auto folder = must(writer->lookup(kRootIno, "folder")).ino;
  must(writer->unlink(folder, "inside"));
  must(writer->remove_directory(kRootIno, "folder"));
  test::write_file(*writer, kRootIno, "folder", "g");
  seal();
  copy();
  expect_equal("one");
  expect_equal("two");
}

TEST_F(CopyTest, InterruptedCopyContinues) {
  auto writer = open("one");
  for (int i = 0; i < 40; ++i) {
    test::write_file(*writer, kRootIno, "f" + std::to_string(i), noise(1U << 20, 10U + i));
  }
  seal();
  int calls = 0;
  progress_ = [&](const TransferProgress&) { return ++calls < 5; };
  EXPECT_EQ(test::code_of(try_copy()), ErrorCode::kInterrupted);
  EXPECT_TRUE(target_->find_version(series(*target_), "one").error().code() ==
              ErrorCode::kNotFound);
  must(target_->close());
  target_.reset();
  target_ = test::reopen(target_path_);
  progress_ = {};
  const auto report = copy();
  expect_equal("one");
  EXPECT_LT(report.sent_bytes, 30U << 20);
}

TEST_F(CopyTest, CrashedCopyContinues) {
  auto writer = open("one");
  for (int i = 0; i < 10; ++i) {
    test::write_file(*writer, kRootIno, "f" + std::to_string(i), noise(1U << 20, 10U + i));
  }
  seal();
  const std::string crashed = place_.path() + "/crashed";
  int calls = 0;
  progress_ = [&](const TransferProgress&) {
    if (++calls == 3) test::copy_crashed(target_path_, crashed);
    return true;
  };
  copy();
  progress_ = {};
  must(target_->close());
  target_.reset();
  target_ = test::reopen(crashed);
  copy();
  expect_equal("one");
}

TEST_F(CopyTest, DeletedVersionsStayUnlessPruned) {
  open("one");
  seal();
  open("two");
  const auto two = seal();
  open("three");
  seal();
  copy();
  must(source_->delete_versions(series(*source_), {two.number}));
  auto report = copy();
  EXPECT_EQ(report.kept, 1U);
  EXPECT_EQ(names(*target_), (std::vector<std::string>{"one", "two", "three"}));
  report = copy({.prune = true});
  EXPECT_EQ(report.deleted, 1U);
  EXPECT_EQ(names(*target_), (std::vector<std::string>{"one", "three"}));
}

TEST_F(CopyTest, PruneOfASourceWithoutVersionsDeletesNothing) {
  open("one");
  const auto one = seal();
  copy();
  must(source_->delete_versions(series(*source_), {one.number}));
  const auto report = must(try_copy({.prune = true}));
  EXPECT_EQ(report.deleted, 0U);
  EXPECT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(names(*target_), (std::vector<std::string>{"one"}));
}

TEST_F(CopyTest, RenamedVersionsAndSeriesFollow) {
  open("one");
  const auto one = seal();
  open("two");
  const auto two = seal();
  copy();
  must(source_->rename_version(one.series, one.number, "x"));
  must(source_->rename_version(two.series, two.number, "one"));
  must(source_->rename_version(one.series, one.number, "two"));
  must(source_->rename_series(one.series, "renamed"));
  const auto report = copy();
  EXPECT_EQ(report.copied, 0U);
  const auto all = must(target_->series());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "renamed");
  const auto versions = must(target_->versions(all[0].id));
  ASSERT_EQ(versions.size(), 2U);
  EXPECT_EQ(versions[0].name, "two");
  EXPECT_EQ(versions[1].name, "one");
}

TEST_F(CopyTest, VersionOfTheSameNameMadeAgainIsAnotherOne) {
  open("daily");
  const auto first = seal();
  copy();
  must(source_->delete_versions(first.series, {first.number}));
  auto writer = open("daily", false);
  test::write_file(*writer, kRootIno, "f", "new");
  seal();
  copy();
  expect_equal("daily");
  EXPECT_EQ(must(target_->versions(series(*target_))).size(), 2U);
}

TEST_F(CopyTest, LockAndFilesBesideFollow) {
  open("one");
  const auto one = seal();
  const Timestamp until{must(source_->find_version(one.series, "one")).sealed_at.seconds + 1000, 0};
  must(source_->lock_version(one.series, one.number, until));
  {
    const auto files = must(source_->beside(one.series));
    const auto folder = must(files->create(kRootIno, "conf", test::folder()));
    const auto file = must(files->create(folder.ino, "rules", test::regular_file()));
    const auto handle = must(files->open(file.ino, true));
    must(handle->write(0, base::as_bytes("keep")));
    must(handle->sync());
  }
  copy();
  const auto locks = must(target_->version_locks(series(*target_)));
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks[0].locked_until, until);
  const auto files = must(target_->beside(series(*target_)));
  const auto folder = must(files->lookup(kRootIno, "conf"));
  EXPECT_EQ(must(files->lookup(folder.ino, "rules")).attributes.size, 4U);
}

TEST_F(CopyTest, SeriesOfThePoolAreCopiedWithTheirSettings) {
  SeriesOptions options;
  options.placement = Placement::kPool;
  options.rewrite = Rewrite::kCap;
  must(source_->create_series("s", options));
  auto writer = open("one");
  test::write_file(*writer, kRootIno, "f", noise(300000, 1));
  seal();
  copy();
  writer = open("two");
  test::write_file(*writer, kRootIno, "same", noise(300000, 1));
  seal();
  EXPECT_EQ(copy().sent_bytes, 0U);
  expect_equal("one");
  expect_equal("two");
  const auto copied = must(target_->find_series("s"));
  EXPECT_EQ(copied.placement, Placement::kPool);
  EXPECT_EQ(copied.rewrite, Rewrite::kCap);
}

TEST_F(CopyTest, RebuiltCatalogOfTheTargetKnowsItsCopies) {
  auto writer = open("one");
  test::write_file(*writer, kRootIno, "f", noise(30000, 1));
  seal();
  copy();
  must(target_->close());
  target_.reset();
  std::filesystem::remove_all(target_path_ + "/catalog");
  {
    const auto repair = must(Repair::plan(target_path_, {}, false, {}));
    must(repair->execute({}));
  }
  target_ = test::reopen(target_path_);
  const auto report = copy();
  EXPECT_EQ(report.present, 1U);
  EXPECT_EQ(report.copied, 0U);
  expect_equal("one");
}

}  // namespace
}  // namespace varve

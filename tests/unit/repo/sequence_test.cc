// SPDX-License-Identifier: Apache-2.0
// The sequence number of an encrypted repository, and an older state that is put back.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "io/client_memory.h"
#include "io/memory_folder.h"
#include "sequence_fixture.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/keys.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

std::string id_of(const std::string& repository) {
  std::ifstream file(repository + "/varve.repo");
  for (std::string word; file >> word;) {
    if (word == "repository_id" && file >> word >> word) return word;
  }
  ADD_FAILURE() << "no id in " << repository;
  return {};
}

TEST_F(SequenceTest, APlainRepositoryHasNoneAndIsNotRemembered) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  auto chosen = quiet_options();
  chosen.memory_folder = directory_.path() + "/state";
  const auto repository = reopen(plain, chosen);
  add_version(*repository, "one");
  EXPECT_FALSE(must(repository->sequence()));
  EXPECT_EQ(must(repository->stats()).sequence, 0U);
  must(repository->close());
  EXPECT_FALSE(fs::exists(directory_.path() + "/state"));
}

TEST_F(SequenceTest, APlainRepositoryInPlaceOfAnEncryptedOneIsRefused) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  auto chosen = quiet_options();
  chosen.memory_folder = directory_.path() + "/state";
  must(reopen(plain, chosen)->close());
  must(io::ClientMemory(chosen.memory_folder, id_of(plain)).accept(3));
  for (const bool reads : {false, true}) {
    chosen.read_only = reads;
    const auto opened = Repository::open(plain, chosen);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::kWrongKey);
    EXPECT_NE(opened.error().message().find("remembers"), std::string::npos);
  }
  chosen.accept_older = true;
  must(reopen(plain, chosen)->close());
}

TEST_F(SequenceTest, AnUnreadableMemoryRefusesAnEncryptedRepositoryOnly) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  // The system opens no link to itself, for root neither.
  fs::create_symlink("state", directory_.path() + "/state");
  auto chosen = quiet_options();
  chosen.memory_folder = directory_.path() + "/state";
  for (const bool reads : {false, true}) {
    chosen.read_only = reads;
    must(reopen(plain, chosen)->close());
  }
  for (const auto& how : {options(), reading()}) {
    const auto opened = Repository::open(path_, how);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::kIo);
    EXPECT_NE(opened.error().message().find("XDG_STATE_HOME"), std::string::npos);
  }
}

TEST_F(SequenceTest, ADamagedMemoryRefusesAPlainRepositoryToo) {
  const std::string plain = directory_.path() + "/plain";
  must(Repository::create(plain, small_chunks(Codec::kNone)));
  auto chosen = quiet_options();
  chosen.memory_folder = directory_.path() + "/state";
  fs::create_directory(chosen.memory_folder);
  fs::permissions(chosen.memory_folder, fs::perms::owner_all);
  std::ofstream(chosen.memory_folder + "/" + id_of(plain)) << "damaged";
  const auto opened = Repository::open(plain, chosen);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kInvalid);
  EXPECT_NE(opened.error().message().find("damaged"), std::string::npos);
}

TEST_F(SequenceTest, EachChangeThatAUserWouldMissCounts) {
  const auto repository = reopen(path_, options());
  std::uint64_t last = sequence_of(*repository);
  const auto grew = [&](const char* by) {
    const auto now = sequence_of(*repository);
    EXPECT_GT(now, last) << by;
    last = now;
    await_memory(now);
    EXPECT_EQ(memory(), line_of(now)) << by;
  };
  const auto id = must(repository->create_series("s")).id;
  grew("a new series");
  const auto version = must(repository->open_version(id, "v.partial", folder()));
  grew("an open version");
  write_file(*must(repository->writer(id)), kRootIno, "f", "bytes");
  must(repository->sync());
  EXPECT_EQ(sequence_of(*repository), last) << "a checkpoint counts";
  must(repository->seal(id, version.number, "v", SealMode::kEnd, SealWriters::kRefuse));
  grew("a seal");
  must(repository->rename_version(id, version.number, "w"));
  grew("another name");
  must(repository->rename_series(id, "t"));
  grew("another name of the series");
  must(repository->set_arrange_settings({.batch = 3}));
  grew("settings of arranging");
  must(repository->change_series(id, {.rewrite = Rewrite::kHar}));
  grew("settings of a series");
  must(repository->set_upkeep_settings({.arrange_bytes_per_second = 7, .keep = {}}));
  grew("defaults");
  const auto other = add_version(*repository, "x", "t");
  grew("another seal");
  must(repository->lock_version(id, other, {4'000'000'000, 0}));
  grew("a lock");
  must(repository->delete_versions(id, {version.number}));
  grew("a deletion");
  must(repository->close());
  EXPECT_EQ(sequence_of(*reopen(path_, reading())), last) << "closing counts";
}

TEST_F(SequenceTest, AChangeOfKeysCounts) {
  const auto before = store("one");
  const auto keys = must(KeySlots::open(path_, options()));
  must(keys->add({.key = test_key('x')}));
  must(keys->close());
  EXPECT_EQ(sequence_of(*reopen(path_, reading())), before + 1);
  EXPECT_EQ(memory(), line_of(before + 1));
}

TEST_F(SequenceTest, AnOlderStateIsRefusedUntilItIsAccepted) {
  store("one");
  copy_crashed(path_, old_);
  const auto newest = store("two");
  EXPECT_EQ(memory(), line_of(newest));
  copy_crashed(old_, path_);
  for (const auto& how : {options(), reading()}) {
    const auto opened = Repository::open(path_, how);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::kCorrupt);
    EXPECT_NE(opened.error().message().find("older than this machine"), std::string::npos);
    EXPECT_NE(opened.error().message().find("accept"), std::string::npos);
  }
  EXPECT_EQ(memory(), line_of(newest));
  must(reopen(path_, reading(""))->close());           // A client that remembers nothing.
  must(reopen(path_, reading("elsewhere"))->close());  // Another machine.
  auto accepts = reading();
  accepts.accept_older = true;
  const auto present = sequence_of(*reopen(path_, accepts));
  EXPECT_LT(present, newest);
  EXPECT_EQ(memory(), line_of(present));
  must(reopen(path_, options())->close());
}

TEST_F(SequenceTest, AWriterThatAcceptsAnOlderStateLeavesAGapInNumbers) {
  store("one");
  copy_crashed(path_, old_);
  store("two");
  copy_crashed(old_, path_);
  auto accepts = options();
  accepts.accept_older = true;
  const auto number_of_new = [&](const OpenOptions& how, const std::string& name) {
    const auto repository = reopen(path_, how);
    add_version(*repository, name);
    const auto versions = must(repository->versions(series_named(*repository, "s")));
    EXPECT_TRUE(must(repository->check({}, {})).damages.empty());
    const auto its = std::ranges::find(versions, name, &VersionInfo::name);
    return static_cast<std::uint32_t>(its->number);
  };
  const auto number = number_of_new(accepts, "three");
  EXPECT_GT(number, 256U);
  EXPECT_EQ(number_of_new(options(), "four"), number + 1) << "a gap is left once";
}

TEST_F(SequenceTest, AnOlderCatalogAloneIsSeenByAReader) {
  store("one");
  copy_crashed(path_, old_);
  store("two");
  copy_crashed(old_ + "/catalog", path_ + "/catalog");
  EXPECT_EQ(code_of(Repository::open(path_, reading())), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(Repository::open(path_, options())), ErrorCode::kCorrupt);
  repair();
  must(reopen(path_, options())->close());
}

TEST_F(SequenceTest, OlderLabelsAloneChangeNothing) {
  store("one");
  copy_crashed(path_, old_);
  const auto newest = store("two");
  fs::copy_file(old_ + "/series/00000001/labels", path_ + "/series/00000001/labels",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(sequence_of(*reopen(path_, reading())), newest);
  const auto repository = reopen(path_, options());
  EXPECT_EQ(must(repository->versions(series_named(*repository, "s"))).size(), 2U);
}

TEST_F(SequenceTest, ARebuiltCatalogContinues) {
  {
    const auto repository = reopen(path_, options());
    add_version(*repository, "one", "a");
    add_version(*repository, "one", "b");
    must(repository->create_series("last"));
    must(repository->remove_series("last"));
    must(repository->close());
  }
  const auto before = sequence_of(*reopen(path_, reading()));
  EXPECT_EQ(memory(), line_of(before));
  fs::remove_all(path_ + "/catalog");
  repair();
  const auto repository = reopen(path_, options());
  EXPECT_EQ(sequence_of(*repository), before);
  add_version(*repository, "two", "b");
  EXPECT_GT(sequence_of(*repository), before);
}

TEST_F(SequenceTest, AnOlderStateWithoutItsCatalogIsSeenToo) {
  store("one");
  copy_crashed(path_, old_);
  store("two");
  copy_crashed(old_, path_);
  fs::remove_all(path_ + "/catalog");
  repair();
  EXPECT_EQ(code_of(Repository::open(path_, options())), ErrorCode::kCorrupt);
}

TEST_F(SequenceTest, AKilledWriterRemembersOnlyWhatIsThere) {
  std::string crashed;
  {
    const auto repository = reopen(path_, options());
    add_version(*repository, "one");
    must(repository->open_version(series_named(*repository, "s"), "two", folder()));
    copy_crashed(path_, old_);
  }
  copy_crashed(old_, path_);
  must(reopen(path_, reading())->close());
  must(reopen(path_, options())->close());
}

TEST_F(SequenceTest, ADamagedMemoryIsAnErrorUntilItIsWrittenAgain) {
  const auto newest = store("one");
  const auto path = memory_path();
  for (const std::string& text :
       {std::string(), std::string("varve-sequence 1 \n"), std::string("varve-sequence 1 7"),
        std::string("varve-sequence 1 -7\n"),
        std::string("varve-sequence 1 99999999999999999999\n"), std::string(1 << 20, '9'),
        std::string("varve-sequence 2 7\n")}) {
    std::ofstream(path, std::ios::binary) << text;
    const auto opened = Repository::open(path_, options());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(opened.error().message().find(path), std::string::npos);
  }
  auto accepts = options();
  accepts.accept_older = true;
  must(reopen(path_, accepts)->close());
  EXPECT_EQ(memory(), line_of(newest));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SequenceTest, AMachineWithoutAPlaceForItWorks) {
  std::ofstream(directory_.path() + "/file") << "no folder";
  const auto repository = reopen(path_, options("file/state"));
  add_version(*repository, "one");
  must(repository->close());
  must(reopen(path_, reading("file/state"))->close());
}

TEST_F(SequenceTest, CheckReportsALowerNumberThanExpected) {
  const auto present = store("one");
  const auto repository = reopen(path_, reading());
  CheckOptions checks;
  checks.expected_sequence = present;
  auto report = must(repository->check(checks, {}));
  EXPECT_TRUE(report.damages.empty());
  EXPECT_EQ(report.sequence, present);
  checks.expected_sequence = present + 1;
  report = must(repository->check(checks, {}));
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_NE(report.damages.front().what.find(std::to_string(present + 1)), std::string::npos);
}

TEST_F(SequenceTest, TheMemoryGrowsUnlessALowerNumberIsAccepted) {
  io::ClientMemory memory(directory_.path() + "/a/b/c", "id");
  EXPECT_FALSE(must(memory.read()));
  memory.remember(5);
  memory.remember(3);
  memory.settle();
  EXPECT_EQ(must(memory.read()), 5U);
  io::ClientMemory other(directory_.path() + "/a/b/c", "id");
  other.remember(4);
  other.settle();
  EXPECT_EQ(must(memory.read()), 5U);
  must(other.accept(2));
  EXPECT_EQ(must(memory.read()), 2U);
  io::ClientMemory nothing("", "id");
  nothing.remember(9);
  nothing.settle();
  EXPECT_FALSE(must(nothing.read()));
}

TEST_F(SequenceTest, AChangeDoesNotWaitForTheMemory) {
  const std::string folder = directory_.path() + "/state";
  auto held = std::optional(must(io::lock_memory(folder)));
  io::ClientMemory memory(folder, "id");
  for (std::uint64_t number = 1; number <= 50; ++number) memory.remember(number);
  EXPECT_FALSE(must(memory.read())) << "it did not wait for the other process";
  held.reset();
  memory.settle();
  EXPECT_EQ(must(memory.read()), 50U);
}

TEST_F(SequenceTest, TheEndOfTheMemoryWaitsForItsLastNumber) {
  const std::string folder = directory_.path() + "/state";
  {
    io::ClientMemory memory(folder, "id");
    memory.remember(7);
    memory.remember(8);
  }
  EXPECT_EQ(must(io::ClientMemory(folder, "id").read()), 8U);
}

}  // namespace
}  // namespace varve::test

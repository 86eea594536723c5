// SPDX-License-Identifier: Apache-2.0
#include "meta/compaction.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/posix_file_system.h"
#include "meta/page_use.h"
#include "support/faulty_file_system.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr std::array<const char*, 2> kPairOfTables = {"a", "b"};
constexpr int kRecords = 3000;
constexpr mode_t kGroupReads = 0640;

// The parameter says whether the environment is encrypted.
class CompactionTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    files_ = must(io::open_root(directory_.path(), {.trust_owner = true}));
    const auto env = open();
    auto txn = must(WriteTxn::begin(env));
    for (int i = 0; i < kRecords; ++i) must(txn.put(0, key(i), value(i)));
    must(txn.put(1, "last", "0"));
    must(txn.commit());
    erase_most(env);
  }
  static std::string key(int i) { return "key " + std::to_string(i); }
  static std::string value(int i) { return test::noise(2500, static_cast<std::uint64_t>(i)); }
  static void erase_most(const Env& env) {
    auto txn = must(WriteTxn::begin(env));
    for (int i = 0; i < kRecords; ++i) {
      if (i % 10 != 0) must(txn.erase(0, key(i)));
    }
    must(txn.commit());
  }
  EnvOptions options() {
    EnvOptions made;
    made.tables = kPairOfTables;
    made.map_bytes = std::size_t{256} << 20;
    made.writer_lock = path("writer");
    if (GetParam()) made.keys.ring = varve::test::test_keys();
    return made;
  }
  Env open() { return must(Env::open(*files_, directory_.path(), options())); }
  std::string path(const char* name) { return directory_.path() + "/" + name; }
  std::uint64_t bytes() { return std::filesystem::file_size(path("data.mdb")); }
  Result<CatalogCompaction> compact_now() {
    const auto env = open();
    return compact(env, *files_, kPairOfTables);
  }
  // Commits one change, and returns the number of the commit.
  static std::uint64_t write(const Env& env, const std::string& last) {
    auto txn = must(WriteTxn::begin(env));
    must(txn.put(1, "last", last));
    must(txn.commit());
    return must(ReadTxn::begin(env)).id();
  }
  void expect_content(const std::string& last) {
    const auto env = open();
    const auto txn = must(ReadTxn::begin(env));
    EXPECT_EQ(must(txn.count(0)), static_cast<std::uint64_t>(kRecords / 10));
    for (int i = 0; i < kRecords; i += 10) EXPECT_EQ(must(txn.get(0, key(i))), value(i));
    EXPECT_EQ(must(txn.get(1, "last")), last);
  }
  // Runs `work` in a process of its own, since the locks of LMDB belong to a process.
  template <typename Work>
  static int in_child(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  varve::test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_P(CompactionTest, CopyIsShortAndHasTheSameRecords) {
  const auto before = bytes();
  EXPECT_TRUE(must(wastes_space(open())));
  const auto done = must(compact_now());
  EXPECT_EQ(done.bytes_before, before);
  EXPECT_EQ(done.bytes_after, bytes());
  EXPECT_LT(bytes(), before / 4);
  EXPECT_FALSE(must(wastes_space(open())));
  EXPECT_FALSE(std::filesystem::exists(path("data.mdb.tmp")));
  expect_content("0");
}

// LMDB takes the newest commit from one of two places, by the number's lowest bit.
TEST_P(CompactionTest, CommitsGoOnFromTheSameNumber) {
  std::uint64_t commit = 0;
  for (int round = 0; round < 5; ++round) {
    {
      const auto env = open();
      commit = write(env, std::to_string(round));
      if (round % 2 == 1) commit = write(env, std::to_string(round));
      must(compact(env, *files_, kPairOfTables));
    }
    expect_content(std::to_string(round));
    const auto env = open();
    EXPECT_EQ(must(ReadTxn::begin(env)).id(), commit);
    EXPECT_EQ(write(env, "more"), commit + 1);
    EXPECT_EQ(write(env, std::to_string(round)), commit + 2);
  }
  expect_content("4");
}

TEST_P(CompactionTest, ReaderInAnotherProcessPreventsIt) {
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t reader = ::fork();
  if (reader == 0) {
    const auto env = open();
    char byte = 'r';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(end[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto before = bytes();
  EXPECT_EQ(code_of(compact_now()), ErrorCode::kBusy);
  EXPECT_EQ(bytes(), before);
  EXPECT_FALSE(std::filesystem::exists(path("data.mdb.tmp")));
  (void)!::write(end[1], &byte, 1);
  ::waitpid(reader, nullptr, 0);
  must(compact_now());
  expect_content("0");
}

TEST_P(CompactionTest, OpenerThatFoundTheOldFileOpensTheNewOne) {
  test::FaultyFileSystem files(must(io::open_root(directory_.path(), {.trust_owner = true})));
  int compactions = 0;
  files.before_descriptor = [&](const std::string& opened) {
    if (!opened.ends_with("/lock.mdb") || compactions++ != 0) return;
    EXPECT_EQ(in_child([&] { return compact_now() ? 0 : 1; }), 0);
  };
  const auto opened = must(EnvFiles::open(files, directory_.path(), options()));
  EXPECT_EQ(compactions, 2);
  struct stat named {};
  struct stat open_file {};
  ASSERT_EQ(::stat(path("data.mdb").c_str(), &named), 0);
  ASSERT_EQ(::fstat(opened.data(), &open_file), 0);
  EXPECT_EQ(named.st_ino, open_file.st_ino);
  const base::UniqueFd lock(::open(path("lock.mdb").c_str(), O_RDWR | O_CLOEXEC));
  const auto other_user = must(ReaderTable::open(lock.get(), ::geteuid()));
  EXPECT_FALSE(must(other_user.exclude_others()));
}

TEST_P(CompactionTest, LinkInPlaceOfTheCopyIsNotFollowed) {
  std::ofstream(path("precious")) << "kept";
  std::filesystem::create_symlink(path("precious"), path("data.mdb.tmp"));
  must(compact_now());
  EXPECT_EQ(std::filesystem::file_size(path("precious")), 4U);
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path("data.mdb"))));
  expect_content("0");
}

TEST_P(CompactionTest, FolderInPlaceOfTheCopyIsAnError) {
  std::filesystem::create_directories(path("data.mdb.tmp") + "/x");
  EXPECT_FALSE(compact_now());
  expect_content("0");
}

TEST_P(CompactionTest, ModeIsKept) {
  ASSERT_EQ(::chmod(path("data.mdb").c_str(), kGroupReads), 0);
  must(compact_now());
  struct stat file {};
  ASSERT_EQ(::stat(path("data.mdb").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, kGroupReads);
}

TEST_P(CompactionTest, LeftOverCopyIsRemoved) {
  std::ofstream(path("data.mdb.tmp")) << "half a copy";
  must(remove_unfinished_copy(*files_, directory_.path()));
  EXPECT_FALSE(std::filesystem::exists(path("data.mdb.tmp")));
  must(remove_unfinished_copy(*files_, directory_.path()));
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, CompactionTest, testing::Bool());

}  // namespace
}  // namespace varve::meta

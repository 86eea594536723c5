// SPDX-License-Identifier: Apache-2.0
// The locks by which users of an environment find each other. Locks of an open file belong to it
// and not to a process, so two tables of one process behave as those of two processes.
#include "meta/reader_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "memory_folder_test.h"
#include "support/temp_repository.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

class ReaderTableTest : public MemoryFolderTest {
 protected:
  void SetUp() override {
    make_places({"/here", "/elsewhere"});
    if (IsSkipped() || HasFatalFailure()) return;
    std::ofstream(lock_path()).flush();
    lock_ = base::UniqueFd(::open(lock_path().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(lock_.valid());
  }
  std::string lock_path() const { return top_ + "/lock.mdb"; }
  Result<ReaderTable> open(const char* place = "/here") const {
    return ReaderTable::open(lock_.get(), ::geteuid(), {{top_ + place, ::geteuid()}});
  }
  std::size_t tables(const char* place = "/here") const {
    const auto folder = top_ + place + "/varve-" + std::to_string(::geteuid());
    if (!std::filesystem::exists(folder)) return 0;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  base::UniqueFd lock_;
};

TEST_F(ReaderTableTest, UsersShareOneTableAndTheLastRemovesIt) {
  {
    std::optional<ReaderTable> first(must(open()));
    const auto second = must(open());
    EXPECT_TRUE(first->is_new());
    EXPECT_FALSE(second.is_new());
    EXPECT_EQ(tables(), 1U);
    first.reset();
    EXPECT_EQ(tables(), 1U);
    EXPECT_FALSE(must(open()).is_new());
  }
  EXPECT_EQ(tables(), 0U);
  EXPECT_EQ(std::filesystem::file_size(lock_path()), 0U);
}

TEST_F(ReaderTableTest, UserOfAnotherTableIsRefused) {
  {
    const auto here = must(open());
    const auto refused = open("/elsewhere");
    EXPECT_EQ(code_of(refused), ErrorCode::kLocked);
    EXPECT_NE(refused.error().message().find("/dev/shm"), std::string::npos);
    EXPECT_TRUE(open().has_value());
    EXPECT_EQ(tables("/elsewhere"), 0U);
  }
  const auto elsewhere = must(open("/elsewhere"));
  EXPECT_EQ(code_of(open()), ErrorCode::kLocked);
}

TEST_F(ReaderTableTest, WithoutSharedMemoryOneProcessMayUseTheEnvironment) {
  const auto alone = must(open("/missing"));
  EXPECT_EQ(code_of(open()), ErrorCode::kLocked);
  const auto refused = open("/missing");
  EXPECT_EQ(code_of(refused), ErrorCode::kLocked);
  EXPECT_NE(refused.error().message().find(top_ + "/missing"), std::string::npos);
}

TEST_F(ReaderTableTest, UserOfAReleaseThatMapsLockMdbIsNoticed) {
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t old_release = ::fork();
  if (old_release == 0) {
    struct flock first {};
    first.l_type = F_RDLCK;
    first.l_whence = SEEK_SET;
    first.l_len = 1;
    char byte = ::fcntl(lock_.get(), F_SETLK, &first) == 0 ? 'l' : 'f';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(end[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'l');
  EXPECT_EQ(code_of(open()), ErrorCode::kLocked);
  (void)!::write(end[1], &byte, 1);
  ::waitpid(old_release, nullptr, 0);
  EXPECT_TRUE(open().has_value());
}

// LMDB of such a release locks the byte of its process before it reads.
TEST_F(ReaderTableTest, ReleaseThatMapsLockMdbCannotRead) {
  const auto table = must(open());
  struct flock process {};
  process.l_type = F_WRLCK;
  process.l_whence = SEEK_SET;
  process.l_start = ::getpid();
  process.l_len = 1;
  EXPECT_EQ(::fcntl(lock_.get(), F_SETLK, &process), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(ReaderTableTest, OnlyUserMayExcludeTheOthers) {
  const auto table = must(open());
  {
    const auto other = must(open());
    EXPECT_FALSE(must(table.exclude_others()));
  }
  ASSERT_TRUE(must(table.exclude_others()));
  std::atomic<bool> has_opened{false};
  std::atomic<bool> has_begun{false};
  std::thread opener([&] {
    has_begun = true;
    const auto waiting = open();
    has_opened = waiting.has_value();
  });
  while (!has_begun) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(has_opened);
  table.admit_others();
  opener.join();
  EXPECT_TRUE(has_opened);
  EXPECT_EQ(code_of(open("/elsewhere")), ErrorCode::kLocked);
}

TEST_F(ReaderTableTest, TablesOfKilledProcessesAreRemoved) {
  const auto table = must(open());
  const auto folder = top_ + "/here/varve-" + std::to_string(::geteuid()) + "/";
  for (const char* name : {"1-1", "2-2", "not-ours"}) std::ofstream(folder + name) << "x";
  struct stat kept {};
  ASSERT_EQ(::stat((folder + "2-2").c_str(), &kept), 0);
  table.remove_unused([&](ino_t inode) { return inode == kept.st_ino; });
  EXPECT_FALSE(std::filesystem::exists(folder + "1-1"));
  EXPECT_TRUE(std::filesystem::exists(folder + "2-2"));
  EXPECT_TRUE(std::filesystem::exists(folder + "not-ours"));
  {
    const base::UniqueFd second(::open((lock_path() + "2").c_str(), O_RDWR | O_CREAT, 0600));
    const auto other =
        must(ReaderTable::open(second.get(), ::geteuid(), {{top_ + "/here", ::geteuid()}}));
    other.remove_unused([](ino_t) { return false; });
  }
  EXPECT_FALSE(must(open()).is_new());  // A table in use stays.
}

TEST_F(ReaderTableTest, FileThatIsOpenForReadingIsEnough) {
  lock_ = base::UniqueFd(::open(lock_path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto table = must(open());
  EXPECT_EQ(code_of(open("/elsewhere")), ErrorCode::kLocked);
}

}  // namespace
}  // namespace varve::meta

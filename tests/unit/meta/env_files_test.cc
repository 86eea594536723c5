// SPDX-License-Identifier: Apache-2.0
// Opening an environment's files in a folder where other users could exchange them.
#include "meta/env_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/posix_file_system.h"
#include "meta/lmdb.h"
#include "support/temp_repository.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr std::array<const char*, 1> kOneTable = {"a"};
constexpr uid_t kOther = 4001;

class EnvFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    files_ = must(io::open_root(directory_.path(), {.trust_owner = true}));
    const auto env = must(Env::open(*files_, directory_.path(), options(false)));
    auto txn = must(WriteTxn::begin(env));
    must(txn.put(0, "key", "value"));
    must(txn.commit());
  }
  EnvOptions options(bool read_only) {
    EnvOptions made;
    made.tables = kOneTable;
    made.read_only = read_only;
    made.writer_lock = path("writer");
    return made;
  }
  std::string path(const char* name) { return directory_.path() + "/" + name; }
  static std::string value_in(const Env& env) {
    const auto txn = must(ReadTxn::begin(env));
    const auto value = must(txn.get(0, "key"));
    return value ? std::string(*value) : "nothing";
  }

  varve::test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(EnvFilesTest, LmdbReadsTheFileThatWasOpenedWhateverTakesItsPlace) {
  const auto opened = must(EnvFiles::open(*files_, directory_.path(), options(true)));
  std::filesystem::rename(path("data.mdb"), path("moved"));
  std::ofstream(path("data.mdb")) << std::string(100000, 'x');
  EXPECT_EQ(value_in(must(Env::open(opened, options(true)))), "value");
}

TEST_F(EnvFilesTest, LinksAreRefusedAndNothingIsMadeBehindThem) {
  for (const char* name : {"data.mdb", "lock.mdb"}) {
    const auto target = path(name) + ".moved";
    std::filesystem::rename(path(name), target);
    std::filesystem::create_symlink(target, path(name));
    EXPECT_EQ(code_of(Env::open(*files_, directory_.path(), options(false))), ErrorCode::kCorrupt);
    std::filesystem::rename(target, path(name));
  }
  std::filesystem::remove(path("lock.mdb"));
  std::filesystem::create_symlink(path("new"), path("lock.mdb"));
  EXPECT_FALSE(Env::open(*files_, directory_.path(), options(true)).has_value());
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(EnvFilesTest, AReaderWhoDoesNotOwnItMakesNoFileAndKeepsWritersOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  ASSERT_EQ(::chown(path("data.mdb").c_str(), kOther, kOther), 0);
  std::filesystem::remove(path("lock.mdb"));
  {
    const auto writer = must(files_->lock(path("writer")));
    EXPECT_EQ(code_of(Env::open(*files_, directory_.path(), options(true))), ErrorCode::kLocked);
  }
  const auto env = must(Env::open(*files_, directory_.path(), options(true)));
  EXPECT_EQ(value_in(env), "value");
  EXPECT_FALSE(std::filesystem::exists(path("lock.mdb")));
  EXPECT_EQ(code_of(files_->lock(path("writer"))), ErrorCode::kLocked);
}

// A write to such a mapping needs a new block where the file system copies on write.
TEST_F(EnvFilesTest, NoFileOfTheDiskIsMappedForSharedWriting) {
  const auto env = must(Env::open(*files_, directory_.path(), options(false)));
  const auto txn = must(ReadTxn::begin(env));
  const auto folder = std::filesystem::canonical(directory_.path()).string() + "/";
  std::ifstream maps("/proc/self/maps");
  int mapped = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(folder) == std::string::npos) continue;
    ++mapped;
    EXPECT_EQ(line.find(" rw-s "), std::string::npos) << line;
  }
  EXPECT_GE(mapped, 1);
}

TEST_F(EnvFilesTest, WriterThatComesLaterKeepsTheSnapshotOfAReader) {
  const auto reader = must(Env::open(*files_, directory_.path(), options(true)));
  const auto snapshot = must(ReadTxn::begin(reader));
  const auto writer = must(Env::open(*files_, directory_.path(), options(false)));
  for (int i = 0; i < 20; ++i) {
    auto txn = must(WriteTxn::begin(writer));
    must(txn.put(0, "key", "value " + std::to_string(i)));
    must(txn.commit());
  }
  const auto value = snapshot.get(0, "key");
  ASSERT_TRUE(value.has_value()) << value.error().message();
  EXPECT_EQ(std::string(**value), "value");
}

// LMDB takes the slots of a process for those of a dead one if it does not find this lock.
TEST_F(EnvFilesTest, SecondUseThatEndsLeavesTheProcessRegistered) {
  const auto env = must(Env::open(*files_, directory_.path(), options(false)));
  const auto snapshot = must(ReadTxn::begin(env));
  const auto is_registered = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      struct flock process {};
      process.l_type = F_WRLCK;
      process.l_whence = SEEK_SET;
      process.l_start = ::getppid();
      process.l_len = 1;
      const int rc = ::fcntl(env.files().table()->descriptor(), F_GETLK, &process);
      ::_exit(rc == 0 && process.l_type != F_UNLCK ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  };
  EXPECT_TRUE(is_registered());
  static_cast<void>(must(Env::open(*files_, directory_.path(), options(false))));
  static_cast<void>(must(EnvFiles::open(*files_, directory_.path(), options(true))));
  EXPECT_TRUE(is_registered());
}

TEST_F(EnvFilesTest, BesideAnotherTableAReaderKeepsWritersOutAndAWriterIsRefused) {
  const base::UniqueFd lock(::open(path("lock.mdb").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(lock.valid());
  const auto elsewhere = must(ReaderTable::open(lock.get(), ::geteuid(), {}));
  EXPECT_EQ(code_of(Env::open(*files_, directory_.path(), options(false))), ErrorCode::kLocked);
  {
    const auto writer = must(files_->lock(path("writer")));
    EXPECT_EQ(code_of(Env::open(*files_, directory_.path(), options(true))), ErrorCode::kLocked);
  }
  const auto env = must(Env::open(*files_, directory_.path(), options(true)));
  EXPECT_EQ(env.files().table(), nullptr);
  EXPECT_EQ(value_in(env), "value");
  EXPECT_EQ(code_of(files_->lock(path("writer"))), ErrorCode::kLocked);
}

// On a disk, each opening would change a folder of that disk four times, and wait for its journal.
TEST_F(EnvFilesTest, TemporaryNamesAreInMemory) {
  struct statfs disk {};
  if (::statfs("/dev/shm", &disk) != 0 || disk.f_type != TMPFS_MAGIC) {
    GTEST_SKIP() << "/dev/shm is not in memory";
  }
  ::unsetenv("XDG_RUNTIME_DIR");
  ::unsetenv("TMPDIR");
  const auto opened = must(EnvFiles::open(*files_, directory_.path(), options(true)));
  const auto names = must(EnvNames::make(opened));
  EXPECT_TRUE(names.folder().starts_with("/dev/shm/")) << names.folder();
}

TEST_F(EnvFilesTest, NoTemporaryNameStays) {
  const std::string temporary = testing::TempDir() + "/varve-names";
  std::filesystem::create_directory(temporary);
  ASSERT_EQ(::chmod(temporary.c_str(), 0700), 0);
  ::setenv("XDG_RUNTIME_DIR", temporary.c_str(), 1);
  const auto env = must(Env::open(*files_, directory_.path(), options(false)));
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  std::filesystem::remove(temporary);
}

}  // namespace
}  // namespace varve::meta

// SPDX-License-Identifier: Apache-2.0
// Tests commits whose writes reach the disk in part, as on a disk that becomes full. LMDB calls
// both an error of the disk.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "meta/lmdb.h"
#include "support/temp_repository.h"

namespace {

// kTakesNoMetaPage also refuses the former meta page, which LMDB then puts back.
enum class Disk { kWhole, kTakesAPart, kFails, kRefusesMetaPage, kTakesNoMetaPage, kSyncsNothing };
Disk disk = Disk::kWhole;

constexpr off_t kMetaBytes = 8192;

// LMDB writes meta pages by a descriptor that syncs each write.
bool refuses_meta_page(int file, off_t offset) {
  if (offset >= kMetaBytes) return false;
  if (disk == Disk::kTakesNoMetaPage) return true;
  return disk == Disk::kRefusesMetaPage && (::fcntl(file, F_GETFL) & O_DSYNC) != 0;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// LMDB's calls reach these functions, because the program comes before the C library. The names are
// those of the library's symbols, which headers may replace by those for large files.
extern "C" ssize_t lmdb_pwrite(int, const void*, size_t, off_t) __asm__("pwrite");
extern "C" ssize_t lmdb_writev(int, const iovec*, int) __asm__("writev");
extern "C" int lmdb_fdatasync(int) __asm__("fdatasync");

ssize_t lmdb_pwrite(int file, const void* bytes, size_t size, off_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (disk == Disk::kFails) return errno = EIO, -1;
  if (refuses_meta_page(file, offset)) return errno = EDQUOT, -1;
  return real(file, bytes, disk == Disk::kTakesAPart ? size / 2 : size, offset);
}

ssize_t lmdb_writev(int file, const iovec* parts, int count) {
  static auto* const real = next<ssize_t(int, const iovec*, int)>("writev");
  if (disk == Disk::kFails) return errno = EIO, -1;
  return real(file, parts, disk == Disk::kTakesAPart ? count / 2 : count);
}

int lmdb_fdatasync(int file) {
  static auto* const real = next<int(int)>("fdatasync");
  if (disk == Disk::kSyncsNothing) return errno = EDQUOT, -1;
  return real(file);
}

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr std::array<const char*, 1> kTable = {"a"};

class ShortWrite : public testing::Test {
 protected:
  void SetUp() override {
    EnvOptions options;
    options.tables = kTable;
    env_.emplace(must(Env::open(directory_.path(), options)));
  }
  void TearDown() override { disk = Disk::kWhole; }

  Result<void> store(std::string_view key, Disk kind) {
    auto txn = must(WriteTxn::begin(*env_));
    for (int i = 0; i < 40; ++i)
      must(txn.put(0, std::string(key) + std::to_string(i), std::string(1000, 'v')));
    disk = kind;
    auto committed = txn.commit();
    disk = Disk::kWhole;
    return committed;
  }

  [[nodiscard]] std::optional<std::string> value(const ReadTxn& txn, std::string_view key) const {
    const auto found = must(txn.get(0, key));
    return found ? std::optional(std::string(*found)) : std::nullopt;
  }
  void expect_only(std::string_view key) {
    const auto txn = must(ReadTxn::begin(*env_));
    EXPECT_EQ(must(txn.count(0)), 40U);
    EXPECT_EQ(value(txn, std::string(key) + "0"), std::string(1000, 'v'));
  }

  varve::test::TempDirectory directory_;
  std::optional<Env> env_;
};

TEST_F(ShortWrite, RefusedMetaPageLeavesAUsableEnvironment) {
  must(store("k", Disk::kWhole));
  const auto reader = must(ReadTxn::begin(*env_));
  for (const auto kind : {Disk::kRefusesMetaPage, Disk::kTakesNoMetaPage}) {
    EXPECT_EQ(code_of(store("lost", kind)), ErrorCode::kNoSpace);
    expect_only("k");
    EXPECT_EQ(value(reader, "k1"), std::string(1000, 'v'));
  }
  EXPECT_EQ(code_of(store("lost", Disk::kRefusesMetaPage)), ErrorCode::kNoSpace);
  // A second user in the process shares the failed environment.
  EnvOptions options;
  options.tables = kTable;
  options.read_only = true;
  const auto second = must(Env::open(directory_.path(), options));
  EXPECT_EQ(must(must(ReadTxn::begin(second)).count(0)), 40U);
  must(store("n", Disk::kWhole));
  EXPECT_EQ(must(must(ReadTxn::begin(second)).count(0)), 80U);
  EXPECT_EQ(must(reader.count(0)), 40U);
  EXPECT_EQ(value(reader, "k39"), std::string(1000, 'v'));
}

// O74: the disk may have the meta page of the failed commit until the former one is synced.
TEST_F(ShortWrite, NoWriteFollowsARefusedMetaPageBeforeASync) {
  must(store("k", Disk::kWhole));
  EXPECT_EQ(code_of(store("lost", Disk::kRefusesMetaPage)), ErrorCode::kNoSpace);
  disk = Disk::kSyncsNothing;
  EXPECT_EQ(code_of(WriteTxn::begin(*env_)), ErrorCode::kNoSpace);
  expect_only("k");
  EXPECT_EQ(code_of(WriteTxn::begin(*env_)), ErrorCode::kNoSpace);
  disk = Disk::kWhole;
  must(store("k", Disk::kWhole));
  env_.reset();
  SetUp();
  expect_only("k");
}

TEST_F(ShortWrite, IsALackOfRoomAlthoughTheDiskHasRoomAgain) {
  EXPECT_EQ(code_of(store("k", Disk::kTakesAPart)), ErrorCode::kNoSpace);
  must(store("k", Disk::kWhole));
}

TEST_F(ShortWrite, AnErrorOfTheDiskIsNoLackOfRoom) {
  EXPECT_EQ(code_of(store("k", Disk::kFails)), ErrorCode::kIo);
}

}  // namespace
}  // namespace varve::meta

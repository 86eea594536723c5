// SPDX-License-Identifier: Apache-2.0
// Tests commits whose writes reach the disk in part, as on a disk that becomes full. LMDB calls
// both an error of the disk.
#include <dlfcn.h>
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

enum class Disk { kWhole, kTakesAPart, kFails };
Disk disk = Disk::kWhole;

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// LMDB's calls reach these functions, because the program comes before the C library. The names are
// those of the library's symbols, which headers may replace by those for large files.
extern "C" ssize_t lmdb_pwrite(int, const void*, size_t, off_t) __asm__("pwrite");
extern "C" ssize_t lmdb_writev(int, const iovec*, int) __asm__("writev");

ssize_t lmdb_pwrite(int file, const void* bytes, size_t size, off_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (disk == Disk::kFails) return errno = EIO, -1;
  return real(file, bytes, disk == Disk::kTakesAPart ? size / 2 : size, offset);
}

ssize_t lmdb_writev(int file, const iovec* parts, int count) {
  static auto* const real = next<ssize_t(int, const iovec*, int)>("writev");
  if (disk == Disk::kFails) return errno = EIO, -1;
  return real(file, parts, disk == Disk::kTakesAPart ? count / 2 : count);
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

  varve::test::TempDirectory directory_;
  std::optional<Env> env_;
};

TEST_F(ShortWrite, IsALackOfRoomAlthoughTheDiskHasRoomAgain) {
  EXPECT_EQ(code_of(store("k", Disk::kTakesAPart)), ErrorCode::kNoSpace);
  must(store("k", Disk::kWhole));
}

TEST_F(ShortWrite, AnErrorOfTheDiskIsNoLackOfRoom) {
  EXPECT_EQ(code_of(store("k", Disk::kFails)), ErrorCode::kIo);
}

}  // namespace
}  // namespace varve::meta

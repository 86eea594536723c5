// SPDX-License-Identifier: Apache-2.0
// Tests behaviour specific to the in-memory file system; the rest is in tests/contract.
#include "io/memory_file_system.h"

#include <gtest/gtest.h>

#include <string>

#include "base/coding.h"

namespace varve::io {
namespace {

TEST(MemoryFileSystem, PathsThatMeanTheSameAreTheSameFile) {
  const auto fs = make_memory_file_system();
  ASSERT_TRUE(fs->make_directory("/repo").has_value());
  auto file = fs->open("repo//./f", OpenMode::kCreateNew);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->write_at(0, base::as_bytes("abc")).has_value());
  EXPECT_EQ(*fs->read_file("/repo/f", 10), "abc");
}

TEST(MemoryFileSystem, HolesCostNoMemory) {
  const auto fs = make_memory_file_system();
  auto file = fs->open("/f", OpenMode::kCreateNew);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->write_at(1ULL << 60, base::as_bytes("x")).has_value());
  EXPECT_EQ(*(*file)->size(), (1ULL << 60) + 1);
  EXPECT_EQ(*(*file)->seek_data(0), 1ULL << 60);
  EXPECT_EQ(*(*file)->seek_hole(0), 0U);
}

TEST(MemoryFileSystem, TwoOfThemShareNothing) {
  const auto one = make_memory_file_system();
  const auto other = make_memory_file_system();
  ASSERT_TRUE(one->make_directory("/d").has_value());
  EXPECT_FALSE(*other->exists("/d"));
}

TEST(MemoryFileSystem, LockMayOutliveIt) {
  auto fs = make_memory_file_system();
  auto lock = fs->lock("/lock");
  ASSERT_TRUE(lock.has_value());
  fs.reset();
  lock->reset();
}

}  // namespace
}  // namespace varve::io

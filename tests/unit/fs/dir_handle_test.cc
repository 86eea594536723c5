// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fs/handles.h"

namespace varve::fs {
namespace {

TEST(DirHandle, EachOffsetLeadsBackToItsName) {
  DirHandle handle(2);
  const std::uint64_t a = handle.remember("a");
  EXPECT_EQ(handle.next_offset(), a + 1);
  const std::uint64_t b = handle.remember("bb");
  const std::uint64_t c = handle.remember("ccc");
  EXPECT_EQ(handle.rewind_to(c), "ccc");
  EXPECT_EQ(handle.rewind_to(b), "bb");
  EXPECT_EQ(handle.next_offset(), b + 1);
  EXPECT_EQ(handle.rewind_to(a), "a");
}

TEST(DirHandle, StartForgetsAllNames) {
  DirHandle handle(2);
  const std::uint64_t first = handle.remember("a");
  EXPECT_EQ(handle.rewind_to(2), "");
  EXPECT_EQ(handle.next_offset(), first);
}

TEST(DirHandle, OffsetNeverGivenMeansTheEndOfTheListed) {
  DirHandle handle(2);
  EXPECT_EQ(handle.rewind_to(1000), "");
  handle.remember("a");
  EXPECT_EQ(handle.rewind_to(1000), "a");
}

}  // namespace
}  // namespace varve::fs

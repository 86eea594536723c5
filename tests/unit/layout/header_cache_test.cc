// SPDX-License-Identifier: Apache-2.0
#include "layout/header_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace varve::layout {
namespace {

constexpr ContainerNumber kFirst{1};
constexpr ContainerNumber kSecond{2};

HeaderCache::Header header_of(ContainerNumber number) {
  format::ContainerHeader header;
  header.number = number;
  return std::make_shared<const format::ContainerHeader>(header);
}

TEST(HeaderCache, KeepsTheHeadersThatWereUsedLast) {
  HeaderCache cache(2 * sizeof(format::ContainerHeader));
  EXPECT_EQ(cache.find(kFirst), nullptr);
  cache.add(kFirst, header_of(kFirst));
  cache.add(kSecond, header_of(kSecond));
  ASSERT_NE(cache.find(kFirst), nullptr);
  cache.add(ContainerNumber{3}, header_of(ContainerNumber{3}));
  EXPECT_EQ(cache.find(kSecond), nullptr);
  EXPECT_EQ(cache.find(kFirst)->number, kFirst);
}

TEST(HeaderCache, AHeaderIsReadOnce) {
  HeaderCache cache(1 << 20);
  EXPECT_TRUE(cache.begin_read(kFirst));
  EXPECT_FALSE(cache.begin_read(kFirst));
  EXPECT_TRUE(cache.begin_read(kSecond));
  cache.end_read(kFirst, header_of(kFirst));
  cache.end_read(kSecond, nullptr);
  EXPECT_FALSE(cache.begin_read(kFirst));
  EXPECT_TRUE(cache.begin_read(kSecond)) << "a failed read must not prevent the next one";
  cache.end_read(kSecond, nullptr);
}

TEST(HeaderCache, AReaderWaitsForAnAnnouncedRead) {
  HeaderCache cache(1 << 20);
  ASSERT_TRUE(cache.begin_read(kFirst));
  HeaderCache::Header found;
  std::thread reader([&] { found = cache.find(kFirst); });
  cache.end_read(kFirst, header_of(kFirst));
  reader.join();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->number, kFirst);
}

}  // namespace
}  // namespace varve::layout

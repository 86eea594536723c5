// SPDX-License-Identifier: Apache-2.0
#include "layout/header_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace varve::layout {
namespace {

constexpr ContainerNumber kFirstContainer{1};
constexpr ContainerNumber kSecondContainer{2};

HeaderCache::Header header_of(ContainerNumber number) {
  format::ContainerHeader header;
  header.number = number;
  return std::make_shared<const format::ContainerHeader>(header);
}

TEST(HeaderCache, KeepsTheHeadersThatWereUsedLast) {
  HeaderCache cache(2 * sizeof(format::ContainerHeader));
  EXPECT_EQ(cache.find(kFirstContainer), nullptr);
  cache.add(kFirstContainer, header_of(kFirstContainer));
  cache.add(kSecondContainer, header_of(kSecondContainer));
  ASSERT_NE(cache.find(kFirstContainer), nullptr);
  cache.add(ContainerNumber{3}, header_of(ContainerNumber{3}));
  EXPECT_EQ(cache.find(kSecondContainer), nullptr);
  EXPECT_EQ(cache.find(kFirstContainer)->number, kFirstContainer);
}

TEST(HeaderCache, AHeaderIsReadOnce) {
  HeaderCache cache(1 << 20);
  EXPECT_TRUE(cache.begin_read(kFirstContainer));
  EXPECT_FALSE(cache.begin_read(kFirstContainer));
  EXPECT_TRUE(cache.begin_read(kSecondContainer));
  cache.end_read(kFirstContainer, header_of(kFirstContainer));
  cache.end_read(kSecondContainer, nullptr);
  EXPECT_FALSE(cache.begin_read(kFirstContainer));
  EXPECT_TRUE(cache.begin_read(kSecondContainer)) << "a failed read must not prevent the next one";
  cache.end_read(kSecondContainer, nullptr);
}

TEST(HeaderCache, AReaderWaitsForAnAnnouncedRead) {
  HeaderCache cache(1 << 20);
  ASSERT_TRUE(cache.begin_read(kFirstContainer));
  HeaderCache::Header found;
  std::thread reader([&] { found = cache.find(kFirstContainer); });
  cache.end_read(kFirstContainer, header_of(kFirstContainer));
  reader.join();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->number, kFirstContainer);
}

}  // namespace
}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
// Tests bytes that readers borrow without a copy.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "restore/read_service.h"
#include "support/fake_source.h"
#include "support/same_bytes.h"

namespace varve::restore {
namespace {

/// Reads without memory to copy to.
Result<ReadBytes> ask_to_lend(ReadHandle& handle, std::uint64_t offset, std::size_t bytes,
                              bool may_wait) {
  return handle.read_as({.offset = offset, .bytes = bytes, .may_wait = may_wait, .may_lend = true});
}

SharedBytes lend(ReadHandle& handle, std::uint64_t offset, std::size_t bytes) {
  const auto got = ask_to_lend(handle, offset, bytes, true);
  return got ? got->lent : SharedBytes{};
}

bool is_part(const SharedBytes& lent, const Bytes& content, std::size_t offset) {
  return test::same_bytes(lent.bytes, std::span(content).subspan(offset, lent.bytes.size()));
}

TEST(Lending, BeginsWithTheSessionAndGivesWhatReadingGives) {
  World world(31);
  world.append_new(world.add_file(), 40 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = world.files[0].content;
  EXPECT_TRUE(lend(*handle, 0, kMiB).bytes.empty());
  Bytes buffer(kMiB);
  ASSERT_TRUE(handle->read(0, buffer));
  EXPECT_TRUE(lend(*handle, kMiB, kMiB).bytes.empty());
  ASSERT_TRUE(handle->read(kMiB, buffer));
  std::size_t pieces = 0;
  for (std::size_t at = 2 * kMiB; at < content.size();) {
    const SharedBytes lent = lend(*handle, at, kMiB);
    ASSERT_FALSE(lent.bytes.empty()) << at;
    ASSERT_LE(lent.bytes.size(), kMiB);
    ASSERT_TRUE(is_part(lent, content, at)) << at;
    at += lent.bytes.size();
    ++pieces;
  }
  EXPECT_LE(pieces, 60U);
  EXPECT_TRUE(lend(*handle, content.size(), 1).bytes.empty());
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
  EXPECT_EQ(service->metrics().delivered_bytes.value(), content.size());
  EXPECT_LE(service->metrics().read_bytes.value(), world.source.stored_bytes() * 105 / 100);
}

TEST(Lending, WhatIsHeldStaysAndIsNotMuch) {
  World world(32);
  world.append_new(world.add_file(), 80 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = world.files[0].content;
  Bytes buffer(kMiB);
  std::vector<std::pair<std::size_t, SharedBytes>> held;
  std::size_t held_bytes = 0;
  for (std::size_t at = 0; at < content.size();) {
    SharedBytes lent = lend(*handle, at, kMiB);
    if (lent.bytes.empty()) {
      const std::size_t bytes = std::min(buffer.size(), content.size() - at);
      ASSERT_EQ(*handle->read(at, buffer), bytes);
      ASSERT_TRUE(
          test::same_bytes(std::span(buffer).first(bytes), std::span(content).subspan(at, bytes)));
      at += bytes;
      continue;
    }
    held_bytes += lent.bytes.size();
    held.emplace_back(at, lent);
    at += lent.bytes.size();
  }
  EXPECT_GE(held_bytes, 12 * kMiB);
  EXPECT_LE(held_bytes, 40 * kMiB);
  for (const auto& [at, lent] : held) EXPECT_TRUE(is_part(lent, content, at)) << at;
}

TEST(Lending, CopiesOnceAndOnlyWhatItCannotLend) {
  World world(35);
  World::File& file = world.add_file();
  world.append_new(file, 20 * kMiB);
  world.append_hole(file, kMiB);
  world.append_new(file, kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = file.content;
  std::size_t lent_bytes = 0;
  for (std::size_t at = 0; at < content.size();) {
    Bytes buffer;
    unsigned copies = 0;
    const auto got = handle->read_as({.offset = at,
                                      .bytes = kMiB,
                                      .memory =
                                          [&](std::size_t bytes) {
                                            ++copies;
                                            buffer.resize(bytes);
                                            return std::span(buffer);
                                          },
                                      .may_lend = true});
    ASSERT_TRUE(got);
    ASSERT_FALSE(got->is_refused());
    ASSERT_EQ(copies, got->is_lent() ? 0U : 1U);
    ASSERT_EQ(got->is_lent(), !got->copied.has_value());
    const auto bytes = got->is_lent() ? got->lent.bytes : std::span<const std::byte>(buffer);
    ASSERT_TRUE(test::same_bytes(bytes, std::span(content).subspan(at, bytes.size()))) << at;
    at += bytes.size();
    if (got->is_lent()) lent_bytes += bytes.size();
  }
  EXPECT_GE(lent_bytes, 10 * kMiB);
  const auto end = handle->read_as({.offset = content.size(), .bytes = 1, .may_lend = true});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->copied, 0U);
}

TEST(Lending, WithoutAWaitGivesAllOrNothing) {
  World world(34);
  World::File& file = world.add_file();
  world.append_new(file, 30 * kMiB);
  world.append_hole(file, kMiB);
  world.append_new(file, kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = file.content;
  Bytes buffer(kMiB);
  std::size_t lent_bytes = 0;
  constexpr std::size_t kPiece = 100U << 10;  // Does not divide 30 MiB.
  for (std::size_t at = 0; at < content.size(); at += kPiece) {
    const std::size_t wanted = std::min(kPiece, content.size() - at);
    const auto got = ask_to_lend(*handle, at, kPiece, false);
    ASSERT_TRUE(got);
    const SharedBytes& lent = got->lent;
    if (got->is_refused()) {
      ASSERT_EQ(*handle->read(at, std::span(buffer).first(wanted)), wanted);
      continue;
    }
    ASSERT_EQ(lent.bytes.size(), wanted);
    ASSERT_TRUE(is_part(lent, content, at)) << at;
    ASSERT_TRUE(at + wanted <= 30 * kMiB || at >= 31 * kMiB) << at;
    lent_bytes += wanted;
  }
  EXPECT_GE(lent_bytes, 5 * kMiB);
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
}

TEST(Lending, EndsAtHolesAndAtDamage) {
  World world(33);
  World::File& file = world.add_file();
  world.append_new(file, 12 * kMiB);
  world.append_hole(file, 3 * kMiB);
  world.append_new(file, 8 * kMiB);
  world.finish();
  const auto header = *world.source.header(ContainerNumber{1});
  std::size_t bad = (*world.source.header(ContainerNumber{0}))->raw_bytes;
  for (std::uint32_t f = 0; f < 5; ++f) bad += header->frames[f].raw_bytes;
  world.source.flip_byte(1, 5);
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  Bytes buffer(kMiB);
  ASSERT_TRUE(handle->read(0, buffer));
  ASSERT_TRUE(handle->read(kMiB, buffer));
  bool met_damage = false;
  for (std::size_t at = 2 * kMiB; at < file.content.size();) {
    const bool is_hole = at >= 12 * kMiB && at < 15 * kMiB;
    const SharedBytes lent = lend(*handle, at, kMiB);
    if (lent.bytes.empty() && at == bad) {
      met_damage = true;
      EXPECT_FALSE(handle->read(at, std::span(buffer).first(1)));
      at += header->frames[5].raw_bytes;
      continue;
    }
    ASSERT_EQ(lent.bytes.empty(), is_hole) << at;
    if (is_hole) {
      at = 15 * kMiB;
      continue;
    }
    ASSERT_TRUE(is_part(lent, file.content, at)) << at;
    at += lent.bytes.size();
    ASSERT_TRUE(at <= 12 * kMiB || at > 15 * kMiB) << at;
  }
  EXPECT_TRUE(met_damage);
}

TEST(ReadService, RunWhoseChunksHaveOtherLengthsFails) {
  for (const int more : {-100, 100}) {
    World world(17);
    world.append_new(world.add_file(), 300000);
    world.finish();
    auto& bytes = world.files[0].recipe->runs.back().bytes;
    bytes = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes) + more);
    const auto service = make_service();
    for (const std::size_t request : {std::size_t{4096}, kMiB}) {
      const auto handle = open_file(*service, world, 0);
      Bytes buffer(request);
      const auto n = handle->read(0, buffer);
      ASSERT_FALSE(n.has_value()) << more << " " << request;
      EXPECT_EQ(n.error().code(), ErrorCode::kCorrupt);
    }
  }
}

}  // namespace
}  // namespace varve::restore

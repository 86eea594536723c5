// SPDX-License-Identifier: Apache-2.0
#include "restore/read_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "restore/read_service_impl.h"
#include "support/fake_source.h"
#include "support/sanitized.h"

namespace varve::restore {
namespace {

/// Reads without a wait. Returns nothing if that is not possible.
std::optional<std::size_t> read_from_memory(ReadHandle& handle, std::uint64_t offset,
                                            std::span<std::byte> out) {
  ReadRequest request = request_to_copy(offset, out);
  request.may_wait = false;
  const auto got = handle.read_as(request);
  return got ? got->copied : std::nullopt;
}

TEST(ReadService, UnknownEngineIsInvalid) {
  base::Metrics registry;
  const auto service = make_read_service({64U << 20, "warp"}, registry);
  ASSERT_FALSE(service.has_value());
  EXPECT_EQ(service.error().code(), ErrorCode::kInvalid);
}

TEST(ReadService, TreeOrderGivesEveryFileExactly) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
      World world(seed, codec);
      fill_random(world, test::kThreadsWatched ? 40 : 150);
      for (const std::size_t request : {kMiB, std::size_t{128} << 10, std::size_t{10000}}) {
        const auto service = make_service();
        for (std::size_t i = 0; i < world.files.size(); ++i) {
          expect_whole(*service, world, i, request);
        }
        EXPECT_GE(service->metrics().sessions.value(), 1U);
      }
    }
  }
}

TEST(ReadService, TreeOrderReadsEachStoredByteAboutOnce) {
  World world(4);
  for (int i = 0; i < 20; ++i) world.append_new(world.add_file(), 4096);
  world.append_new(world.add_file(), 40 * kMiB);
  for (int i = 0; i < 2000; ++i) world.append_new(world.add_file(), 5000);
  world.finish();
  const auto service = make_service();
  for (std::size_t i = 0; i < world.files.size(); ++i) expect_whole(*service, world, i, kMiB);
  const ReadMetrics& counted = service->metrics();
  EXPECT_EQ(counted.sessions.value(), 1U);
  EXPECT_EQ(counted.delivered_bytes.value(), world.source.stored_bytes());
  EXPECT_LE(counted.read_bytes.value(), world.source.stored_bytes() * 105 / 100);
  EXPECT_LE(counted.requests.value(), world.source.stored_bytes() / (300U << 10));
}

TEST(ReadService, BulkReadsStreamFromTheThirdFileAtTheLatest) {
  World world(5);
  for (int i = 0; i < 100; ++i) world.append_new(world.add_file(2), 3000);
  world.finish();
  const auto service = make_service();
  for (std::size_t i = 0; i < 3; ++i) expect_whole(*service, world, i, kMiB);
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
  const std::uint64_t requests = service->metrics().requests.value();
  for (std::size_t i = 3; i < 100; ++i) expect_whole(*service, world, i, kMiB);
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
  EXPECT_LE(service->metrics().requests.value(), requests + 2);
}

TEST(ReadService, LargeFileStreamsFromItsSecondRead) {
  World world(6);
  world.append_new(world.add_file(), 20 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  Bytes buffer(kMiB);
  ASSERT_TRUE(handle->read(0, buffer).has_value());
  EXPECT_EQ(service->metrics().sessions.value(), 0U);
  ASSERT_TRUE(handle->read(kMiB, buffer).has_value());
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
}

TEST(ReadService, SessionGoesOnBehindFilesThatAreLeftOut) {
  World world(7);
  for (int i = 0; i < 40; ++i) world.append_new(world.add_file(), 3 * kMiB);
  world.finish();
  const auto service = make_service();
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < world.files.size(); i += 4) {
    expect_whole(*service, world, i, kMiB);
    wanted += world.files[i].content.size();
  }
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
  // When the reader leaves out a file, the areas assembled in advance are wasted.
  EXPECT_LE(service->metrics().read_bytes.value(), world.source.stored_bytes() * 85 / 100);
  EXPECT_GE(service->metrics().read_bytes.value(), wanted);
}

TEST(ReadService, RequestsThatOvertakeEachOtherStayInTheSession) {
  World world(8);
  world.append_new(world.add_file(), 40 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = world.files[0].content;
  Bytes buffer(kMiB / 4);
  for (std::size_t at = 0; at + 2 * buffer.size() <= content.size(); at += 2 * buffer.size()) {
    for (const std::size_t offset : {at + buffer.size(), at}) {
      const auto n = handle->read(offset, buffer);
      ASSERT_TRUE(n.has_value());
      ASSERT_EQ(std::memcmp(buffer.data(), content.data() + offset, *n), 0);
    }
  }
  EXPECT_EQ(service->metrics().sessions.value(), 1U);
  EXPECT_LE(service->metrics().read_bytes.value(), world.source.stored_bytes() * 105 / 100);
}

TEST(ReadService, InterleavedReadersEachHaveTheirSession) {
  World world(9);
  for (int i = 0; i < 3; ++i) world.append_new(world.add_file(), 24 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto a = open_file(*service, world, 0);
  const auto b = open_file(*service, world, 2);
  Bytes buffer(128U << 10);
  for (std::size_t at = 0; at < world.files[0].content.size(); at += buffer.size()) {
    for (const auto& [handle, index] : {std::pair(a.get(), 0U), std::pair(b.get(), 2U)}) {
      const auto n = handle->read(at, buffer);
      ASSERT_TRUE(n.has_value());
      ASSERT_EQ(std::memcmp(buffer.data(), world.files[index].content.data() + at, *n), 0);
    }
  }
  EXPECT_EQ(service->metrics().sessions.value(), 2U);
  EXPECT_LE(service->metrics().read_bytes.value(), world.source.stored_bytes());
}

/// Two programs copy two folders of one version. The service must recognise both orders.
TEST(ReadService, InterleavedWalksOfSmallFilesEachHaveTheirSession) {
  constexpr std::size_t kFiles = 400;
  World world(21);
  for (std::size_t i = 0; i < kFiles; ++i) world.append_new(world.add_file(), 120U << 10);
  world.finish();
  const auto service = make_service();
  Bytes buffer(128U << 10);
  for (std::size_t i = 0; i < kFiles / 2; ++i) {
    for (const std::size_t number : {i, kFiles / 2 + i}) {
      const auto handle = open_file(*service, world, number);
      const Bytes& content = world.files[number].content;
      const auto n = handle->read(0, buffer);
      ASSERT_TRUE(n.has_value());
      ASSERT_EQ(*n, content.size());
      ASSERT_EQ(std::memcmp(buffer.data(), content.data(), *n), 0);
    }
  }
  EXPECT_EQ(service->metrics().sessions.value(), 2U);
  EXPECT_LE(service->metrics().requests.value(), kFiles / 2);
}

TEST(ReadService, RandomReadsFetchOnlyTheFramesThatCoverThem) {
  World world(10);
  world.append_new(world.add_file(), 60 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = world.files[0].content;
  Bytes buffer(4096);
  for (int i = 0; i < 500; ++i) {
    const std::size_t offset = world.random() % (content.size() - buffer.size());
    const std::uint64_t before = service->metrics().read_bytes.value();
    const auto n = handle->read(offset, buffer);
    ASSERT_TRUE(n.has_value());
    ASSERT_EQ(*n, buffer.size());
    ASSERT_EQ(std::memcmp(buffer.data(), content.data() + offset, *n), 0);
    // 4 KiB may cross the border of two frames.
    ASSERT_LE(service->metrics().read_bytes.value() - before, 2 * format::kFrameRawBytesMax);
  }
  EXPECT_EQ(service->metrics().sessions.value(), 0U);
  EXPECT_LE(service->metrics().read_bytes.value(), 500 * format::kFrameRawBytesMax * 11 / 10);
}

TEST(ReadService, TheMetricsTellWhichFramesWereCached) {
  World world(8);
  world.append_new(world.add_file(), 4 * kMiB);
  world.finish();
  const auto service = make_service();
  const ReadMetrics& metrics = service->metrics();
  Bytes buffer(100);
  for (std::uint64_t reads = 1; reads <= 3; ++reads) {
    // Another handle, because a handle remembers its last frame.
    const auto n = open_file(*service, world, 0)->read(2 * kMiB, buffer);
    ASSERT_TRUE(n.has_value());
    ASSERT_EQ(*n, buffer.size());
    EXPECT_EQ(metrics.frame_cache_misses.value(), 1U);
    EXPECT_EQ(metrics.frame_cache_hits.value(), reads - 1);
    EXPECT_EQ(metrics.requests.value(), 1U);
    EXPECT_EQ(metrics.delivered_bytes.value(), reads * buffer.size());
  }
}

TEST(ReadService, TheMetricsTellWhichChunksAnAreaFoundInTheCache) {
  std::vector<std::uint64_t> hits;
  for (const bool repeats : {false, true}) {
    World world(9);
    World::File& file = world.add_file();
    world.append_new(file, 20 * kMiB);  // The session starts here.
    std::vector<ChunkId> first;
    for (int i = 0; i < 200; ++i) {
      first.push_back(world.new_chunk(8000));
      world.append(file, first.back());
    }
    world.append_new(file, 20 * kMiB);
    for (const ChunkId id : first) world.append(file, repeats ? id : world.new_chunk(8000));
    world.finish();
    const auto service = make_service();
    expect_whole(*service, world, 0, kMiB);
    const ReadMetrics& metrics = service->metrics();
    EXPECT_GT(metrics.areas.value(), 1U);
    EXPECT_GT(metrics.chunk_cache_misses.value(), first.size());
    EXPECT_GT(metrics.memory_bytes.value(), 0U);
    hits.push_back(metrics.chunk_cache_hits.value());
  }
  // Without repeats, the cache has only chunks that were read with those of an earlier area.
  EXPECT_GT(hits[1], hits[0] + 100);
}

TEST(ReadService, ReaderThatJumpsAwayGetsANewSessionWhenItReadsOn) {
  World world(11);
  world.append_new(world.add_file(), 80 * kMiB);
  world.finish();
  const auto service = make_service(16U << 20);
  const auto handle = open_file(*service, world, 0);
  const Bytes& content = world.files[0].content;
  Bytes buffer(kMiB);
  std::uint64_t wanted = 0;
  for (const std::size_t start : {std::size_t{0}, 50 * kMiB, 20 * kMiB}) {
    ++wanted;
    // The abandoned session ends only after its present assembly, so this may take a while.
    std::size_t end = start + 28 * kMiB;
    for (std::size_t at = start; at < end; at += kMiB) {
      ASSERT_TRUE(handle->read(at, buffer).has_value());
      ASSERT_EQ(std::memcmp(buffer.data(), content.data() + at, kMiB), 0);
      if (service->metrics().sessions.value() == wanted) end = std::min(end, at + 10 * kMiB);
      // On a busy machine, that assembly needs the processor more than this reader does.
      for (int i = 0; i < 100 && service->metrics().sessions.value() != wanted; ++i) {
        std::this_thread::yield();
      }
    }
    EXPECT_EQ(service->metrics().sessions.value(), wanted);
  }
}

TEST(ReadService, GiantHoleCostsNeitherTimeNorReads) {
  World world(12);
  World::File& file = world.add_file();
  const ChunkId header = world.new_chunk(5000);
  const ChunkId tail = world.new_chunk(6000);
  file.recipe->append_chunk(header, 5000);
  file.recipe->append_hole(1ULL << 40);
  file.recipe->append_chunk(tail, 6000);
  world.append_new(world.add_file(), 4 * kMiB);
  world.finish();
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  Bytes buffer(kMiB, std::byte{1});
  ASSERT_TRUE(handle->read(0, buffer).has_value());
  const std::uint64_t requests = service->metrics().requests.value();
  for (std::uint64_t at = 5000; at < 5000 + 64 * kMiB; at += kMiB) {
    ASSERT_EQ(read_from_memory(*handle, at, buffer), kMiB);
    ASSERT_TRUE(
        std::all_of(buffer.begin(), buffer.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  EXPECT_EQ(service->metrics().requests.value(), requests);
  const auto n = handle->read((1ULL << 40) + 1000, buffer);
  ASSERT_TRUE(n.has_value());
  EXPECT_EQ(*n, 10000U);
  EXPECT_EQ(buffer[3999], std::byte{0});
  EXPECT_EQ(buffer[4000], std::byte{7});
  EXPECT_EQ(*handle->read((1ULL << 40) + 11000, buffer), 0U);
}

TEST(ReadService, WithoutAWaitItAnswersFromAreasFramesAndHolesOnly) {
  World world(13);
  World::File& file = world.add_file();
  world.append_new(file, 8 * kMiB);
  world.append_hole(file, kMiB);
  world.append_new(file, 3 * kMiB);
  world.finish();
  const Bytes& content = file.content;
  const auto service = make_service();
  const auto handle = open_file(*service, world, 0);
  Bytes buffer(4096);
  EXPECT_EQ(read_from_memory(*handle, 0, buffer), std::nullopt);
  EXPECT_EQ(service->metrics().requests.value(), 0U);
  EXPECT_EQ(read_from_memory(*handle, content.size(), buffer), 0U);
  EXPECT_EQ(read_from_memory(*handle, 8 * kMiB + 100, buffer), buffer.size());
  // This data is in the frame that the last read decoded.
  ASSERT_TRUE(handle->read(10 * kMiB, buffer).has_value());
  ASSERT_EQ(read_from_memory(*handle, 10 * kMiB + 100, std::span(buffer).first(500)), 500U);
  EXPECT_EQ(std::memcmp(buffer.data(), content.data() + 10 * kMiB + 100, 500), 0);
  // This data is in the area of a session.
  Bytes large(kMiB / 2);
  ASSERT_TRUE(handle->read(0, large).has_value());
  ASSERT_TRUE(handle->read(kMiB / 2, large).has_value());
  ASSERT_EQ(read_from_memory(*handle, kMiB, std::span(buffer)), buffer.size());
  EXPECT_EQ(std::memcmp(buffer.data(), content.data() + kMiB, buffer.size()), 0);
}

TEST(ReadService, MemoryStaysWithinTheBudget) {
  World world(14);
  fill_random(world, test::kThreadsWatched ? 30 : 150);
  for (const std::size_t budget : {16 * kMiB, 64 * kMiB}) {
    base::Metrics registry;
    ReadServiceImpl service({budget, "alacc"}, registry);
    std::vector<std::thread> readers;
    for (std::size_t t = 0; t < 6; ++t) {
      readers.emplace_back([&, t] {
        for (std::size_t i = t * world.files.size() / 8; i < world.files.size(); ++i) {
          expect_whole(service, world, i, 128U << 10);
        }
      });
    }
    for (auto& reader : readers) reader.join();
    // Each thread may also hold a slice and a frame. A thread that is not scheduled may hold an
    // area of a session that was replaced, and a session that is assembling one learns only
    // afterwards that its share has become smaller.
    const std::size_t areas = 2 * std::min<std::size_t>(budget / 8, 4 * kMiB);
    EXPECT_LE(service.memory().peak(),
              budget + areas + 6 * (kSliceBytesMax + format::kFrameRawBytesMax));
  }
}

TEST(ReadService, ManyThreadsReadTheSameBytes) {
  World world(15, Codec::kZstd);
  fill_random(world, test::kThreadsWatched ? 40 : 200);
  const auto service = make_service(32U << 20);
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 4; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937 random(t);
      if (t % 2 == 0) {
        for (std::size_t i = 0; i < world.files.size(); ++i) {
          expect_whole(*service, world, i, 100000 + t);
        }
        return;
      }
      Bytes buffer(20000);
      for (int i = 0; i < 600; ++i) {
        const std::size_t index = random() % world.files.size();
        const Bytes& content = world.files[index].content;
        const auto handle = open_file(*service, world, index);
        const std::size_t offset = random() % (content.size() + 1);
        auto n = read_from_memory(*handle, offset, buffer);
        if (!n) n = *handle->read(offset, buffer);
        ASSERT_EQ(*n, std::min(buffer.size(), content.size() - offset));
        ASSERT_TRUE(
            test::same_bytes(std::span(buffer).first(*n), std::span(content).subspan(offset, *n)));
      }
    });
  }
  for (auto& reader : readers) reader.join();
}

// Reads a whole file in small requests. Requests in [bad_begin, bad_end) must fail, all others
// succeed.
void expect_bad_range(ReadService& service, World& world, std::size_t index, std::size_t bad_begin,
                      std::size_t bad_end, const std::string& named) {
  const Bytes& content = world.files[index].content;
  const auto handle = open_file(service, world, index);
  Bytes buffer(8192);
  for (std::size_t at = 0; at < content.size(); at += buffer.size()) {
    const auto n = handle->read(at, buffer);
    const bool is_bad = at < bad_end && at + buffer.size() > bad_begin;
    ASSERT_EQ(n.has_value(), !is_bad) << at;
    if (is_bad) {
      ASSERT_EQ(n.error().code(), ErrorCode::kCorrupt);
      ASSERT_NE(n.error().message().find(named), std::string::npos) << n.error().message();
    } else {
      ASSERT_EQ(std::memcmp(buffer.data(), content.data() + at, *n), 0) << at;
    }
  }
}

TEST(ReadService, DamagedFrameFailsOnlyTheReadsThatTouchIt) {
  World world(16);
  world.append_new(world.add_file(), 12 * kMiB);
  world.finish();
  std::size_t begin = 0;
  const auto header0 = *world.source.header(ContainerNumber{0});
  const auto header1 = *world.source.header(ContainerNumber{1});
  begin = header0->raw_bytes;
  for (std::uint32_t f = 0; f < 5; ++f) begin += header1->frames[f].raw_bytes;
  world.source.flip_byte(1, 5);
  const auto service = make_service();
  expect_bad_range(*service, world, 0, begin, begin + header1->frames[5].raw_bytes,
                   "container 1, frame 5");
}

TEST(ReadService, WhatWasReadWrongOnceIsReadAgain) {
  World world(19);
  world.append_new(world.add_file(), 60 * kMiB);
  world.finish();
  // The first reads do not come from a session.
  for (std::uint32_t i = 2; i < world.source.containers(); ++i) world.source.wrong_once.insert(i);
  const auto service = make_service();
  expect_whole(*service, world, 0, kMiB);
  EXPECT_TRUE(world.source.wrong_once.empty());
}

TEST(ReadService, DamagedHeaderFailsOnlyTheReadsOfItsContainer) {
  World world(17);
  world.append_new(world.add_file(), 15 * kMiB);
  world.finish();
  const std::size_t begin = (*world.source.header(ContainerNumber{0}))->raw_bytes;
  const std::size_t end = begin + (*world.source.header(ContainerNumber{1}))->raw_bytes;
  world.source.damage_header(1);
  const auto service = make_service();
  expect_bad_range(*service, world, 0, begin, end, "container 1");
}

TEST(ReadService, RecipeOfAMillionRunsIsReadInOrder) {
  World world(18);
  World::File& file = world.add_file();
  std::vector<ChunkId> ids;
  for (int i = 0; i < 64; ++i) ids.push_back(world.new_chunk(64));
  for (int i = 0; i < 1000000; ++i) world.append(file, ids[world.random() % ids.size()]);
  world.finish();
  const auto service = make_service();
  expect_whole(*service, world, 0, kMiB);
  const auto handle = open_file(*service, world, 0);
  Bytes buffer(4096);
  for (int i = 0; i < 300; ++i) {
    const std::size_t offset = world.random() % (file.content.size() - buffer.size());
    ASSERT_EQ(*handle->read(offset, buffer), buffer.size());
    ASSERT_EQ(std::memcmp(buffer.data(), file.content.data() + offset, buffer.size()), 0);
  }
}

}  // namespace
}  // namespace varve::restore

// SPDX-License-Identifier: Apache-2.0
// Tests which requests the reads of an attached folder make, and that they return the object's
// bytes.
#include "remote/cell_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cell_reader_fixture.h"

namespace varve::remote {
namespace {

TEST_F(CellReaderTest, ASmallReadRequestsItsCell) {
  EXPECT_FALSE(read(3 * kMiB + 100, 64 << 10));
  EXPECT_EQ(gets(), 1U);
  EXPECT_EQ(received(), kCacheCellBytes);
}

TEST_F(CellReaderTest, AContainerAtAnyPlaceIsOneRequest) {
  EXPECT_FALSE(read(kMiB + 4096, 4 * kMiB));
  EXPECT_EQ(gets(), 1U);
  EXPECT_LE(received(), 4 * kMiB + kCacheCellBytes);
}

TEST_F(CellReaderTest, ReadsOfABatchThatTouchAreOneRequest) {
  EXPECT_FALSE(read_all({{kMiB, 500'000}, {kMiB + 500'000, 500'000}, {kMiB + 100, 10}, {7, 0}}));
  EXPECT_EQ(gets(), 1U);
}

TEST_F(CellReaderTest, TheEndOfAnObjectIsAShortCell) {
  EXPECT_FALSE(read(kObjectBytes - 10, 10));
  EXPECT_FALSE(read(0, kObjectBytes));
  restart();
  EXPECT_FALSE(read(0, kObjectBytes));
}

TEST_F(CellReaderTest, TheCacheSurvivesARestart) {
  EXPECT_FALSE(read(5 * kMiB - 300'000, 2 * kMiB));
  restart();
  const auto before = gets();
  EXPECT_FALSE(read(5 * kMiB - 300'000, 2 * kMiB));
  EXPECT_EQ(gets(), before);
  EXPECT_FALSE(read(5 * kMiB, 3 * kMiB)) << "a part of it is in the cache";
  EXPECT_EQ(gets(), before + 1);
}

TEST_F(CellReaderTest, CellsOfABlockThatComeLaterKeepTheOthers) {
  for (std::uint64_t cell = 0; cell < kCellsPerBlock; cell += 2) {
    EXPECT_FALSE(read(cell * kCacheCellBytes, 10));
  }
  restart();
  const auto before = gets();
  for (std::uint64_t cell = 0; cell < kCellsPerBlock; cell += 2) {
    EXPECT_FALSE(read(cell * kCacheCellBytes + 1000, 10));
  }
  EXPECT_EQ(gets(), before);
}

TEST_F(CellReaderTest, TwoProcessesShareTheCache) {
  CellReader other(bucket_, *files_, "/r/cache", cache_bytes_, limits_);
  EXPECT_FALSE(read(0, 2 * kMiB));
  reader_.reset();  // Its writes to the cache have ended.
  const auto before = gets();
  Bytes out(2 * kMiB);
  std::atomic<bool> done = false;
  other.read({{range(0, out.size()), out}},
             [&](std::size_t, const std::optional<Error>&) { done = true; });
  while (!done) std::this_thread::yield();
  EXPECT_EQ(gets(), before);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), content_.begin()));
}

TEST_F(CellReaderTest, ADamagedCacheIsReadAgain) {
  EXPECT_FALSE(read(0, 3 * kMiB));
  reader_.reset();
  const auto names = files_->list("/r/cache");
  ASSERT_TRUE(names);
  ASSERT_FALSE(names->empty());
  for (const auto& name : *names) {
    const auto file = files_->open("/r/cache/" + name, io::OpenMode::kReadWrite);
    ASSERT_TRUE(file);
    Bytes byte(1);
    for (const std::uint64_t at : {0U, 9U, 100'000U}) {
      ASSERT_TRUE((*file)->read_at(at, byte));
      byte[0] ^= std::byte{0x40};
      ASSERT_TRUE((*file)->write_at(at, byte));
    }
  }
  restart();
  EXPECT_FALSE(read(0, 3 * kMiB));
}

TEST_F(CellReaderTest, TheCacheStaysBelowItsLimit) {
  cache_bytes_ = 2 * kMiB;
  limits_.held_bytes_max = 0;
  restart();
  for (std::uint64_t offset = 0; offset + kMiB < kObjectBytes; offset += kMiB) {
    EXPECT_FALSE(read(offset, kMiB));
  }
  reader_.reset();
  EXPECT_LE(*files_->tree_bytes("/r/cache"), 2 * kMiB);
}

TEST_F(CellReaderTest, ReadersOfOneMissingCellMakeOneRequest) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (std::uint64_t at = 0; at + 100'000 < kObjectBytes; at += 100'000) {
        EXPECT_FALSE(read(at, 100'000));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(received(), kObjectBytes);
  EXPECT_LE(gets(), kObjectBytes / kCacheCellBytes + 1);
}

TEST_F(CellReaderTest, WhatIsReadInAdvanceIsRequestedOnce) {
  reader_->will_read(range(kMiB + 4096, 4 * kMiB));
  EXPECT_FALSE(read_all({{kMiB + 5000, 300'000}, {4 * kMiB, 300'000}}));
  reader_->will_read(range(kMiB + 4096, 4 * kMiB));
  EXPECT_FALSE(read(3 * kMiB, kMiB));
  restart();
  reader_->will_read(range(kMiB + 4096, 4 * kMiB));
  EXPECT_FALSE(read(3 * kMiB, kMiB));
  EXPECT_EQ(gets(), 1U);
}

TEST_F(CellReaderTest, ADroppedRangeIsRequestedAgain) {
  EXPECT_FALSE(read(0, 4 * kMiB));
  reader_->drop(range(kMiB + 5, 10));
  EXPECT_FALSE(read(kMiB + 5, 10));
  EXPECT_EQ(gets(), 2U);
  EXPECT_FALSE(read(0, 4 * kMiB));
  restart();
  reader_->drop(range(3 * kMiB + 5, 10));
  const auto before = received();
  EXPECT_FALSE(read(2 * kMiB, kMiB));
  EXPECT_EQ(received(), before) << "another block is cached";
  EXPECT_FALSE(read(3 * kMiB + 5, 10));
  EXPECT_EQ(received(), before + kCacheCellBytes);
}

TEST_F(CellReaderTest, TheCacheShrinksByTheBlocksThatWereUsedLongestAgo) {
  for (std::uint64_t at = 0; at < 6 * kMiB; at += kMiB) EXPECT_FALSE(read(at, kMiB));
  restart();
  for (std::uint64_t at = 0; at < 2 * kMiB; at += kMiB) EXPECT_FALSE(read(at, kMiB));
  EXPECT_GE(reader_->shrink_cache(3 * kMiB), 3 * kMiB);
  const auto before = received();
  EXPECT_FALSE(read(0, 2 * kMiB));
  EXPECT_EQ(received(), before);
  EXPECT_LE(reader_->shrink_cache(100 * kMiB), 4 * kMiB);
  EXPECT_EQ(cached_bytes(), 0U);
}

// The first ones wait for nothing, so their bytes come sooner.
TEST_F(CellReaderTest, RequestsInAdvanceThatWaitAreJoined) {
  limits_.bytes_max = 4 * kMiB;
  limits_.request_bytes_max = kMiB / 2;
  limits_.joined_bytes_max = 8 * kMiB;
  limits_.unread_kept = std::chrono::minutes(5);
  restart();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += kMiB / 2) {
    reader_->will_read(range(at, kMiB / 2));
  }
  EXPECT_FALSE(read(0, 10 * kMiB));
  EXPECT_EQ(received(), 10 * kMiB);
  EXPECT_EQ(gets(), 8 + 6U) << "a quarter of what may be in flight is the most of one request";
}

TEST_F(CellReaderTest, ARangeBesideAWaitingRequestIsRequestedOnce) {
  limits_.bytes_max = 4 * kMiB;
  limits_.request_bytes_max = kMiB / 2;
  limits_.unread_kept = std::chrono::minutes(5);
  restart();
  std::minstd_rand random(3);
  for (int i = 0; i < 300; ++i)
    reader_->will_read(range(random() % (kObjectBytes - 300'000), 300'000));
  EXPECT_FALSE(read(0, kObjectBytes));
  EXPECT_EQ(received(), kObjectBytes);
}

TEST_F(CellReaderTest, MissesAtRandomWiden) {
  EXPECT_FALSE(read_at_random(4 * kMiB + 100, 64 << 10));
  EXPECT_EQ(received(), kCacheCellBytes) << "a lone read stays small";
  EXPECT_FALSE(read_at_random(6 * kMiB + 500'000, 64 << 10));
  EXPECT_EQ(gets(), 2U);
  EXPECT_EQ(received(), kCacheCellBytes + kMiB) << "the block";
  EXPECT_FALSE(read_at_random(6 * kMiB + 900'000, 64 << 10));
  EXPECT_EQ(gets(), 2U);
  EXPECT_FALSE(read_at_random(7 * kMiB + 500'000, 64 << 10));
  EXPECT_EQ(received(), 4 * kMiB) << "all others of the region";
  for (std::uint64_t at = 4 * kMiB; at < 8 * kMiB; at += 200'000) {
    EXPECT_FALSE(read_at_random(at, 1000));
  }
  EXPECT_EQ(received(), 4 * kMiB);
  EXPECT_LE(gets(), 4U);
  EXPECT_FALSE(read_at_random(8 * kMiB + 500'000, 1000)) << "another region";
  EXPECT_EQ(received(), 4 * kMiB + kCacheCellBytes);
}

TEST_F(CellReaderTest, PlannedReadsNeverWiden) {
  for (std::uint64_t at = 0; at < 4 * kMiB; at += 2 * kCacheCellBytes) EXPECT_FALSE(read(at, 10));
  EXPECT_EQ(received(), 16 * kCacheCellBytes);
}

TEST_F(CellReaderTest, FewKnownCellsBetweenMissingOnesAreReadAgain) {
  EXPECT_FALSE(read(kMiB + 3 * kCacheCellBytes, 10));
  EXPECT_FALSE(read_at_random(kMiB, 10));
  EXPECT_EQ(gets(), 2U) << "the block is one request";
  EXPECT_EQ(received(), kCacheCellBytes + kMiB);
}

TEST_F(CellReaderTest, WhatArrivedInAdvanceStaysUntilItIsRead) {
  cache_bytes_ = 0;
  limits_.held_bytes_max = kMiB;
  limits_.unread_kept = std::chrono::minutes(5);
  restart();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 2 * kMiB)
    reader_->will_read(range(at, 2 * kMiB));
  EXPECT_FALSE(read(0, 10 * kMiB));
  EXPECT_EQ(received(), 10 * kMiB) << "bytes were received twice";
}

TEST_F(CellReaderTest, WhatArrivedInAdvanceCountsAsInFlight) {
  limits_.bytes_max = 4 * kMiB;
  limits_.unread_kept = std::chrono::minutes(5);
  restart();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 2 * kMiB)
    reader_->will_read(range(at, 2 * kMiB));
  EXPECT_FALSE(read(0, 10));
  EXPECT_EQ(gets(), 2U) << "no more until these are read";
  EXPECT_FALSE(read(8 * kMiB, 10)) << "a reader does not wait for that";
  EXPECT_FALSE(read(0, 10 * kMiB));
  EXPECT_EQ(received(), 10 * kMiB);
}

TEST_F(CellReaderTest, WhatIsNotReadSoonMakesRoom) {
  limits_.bytes_max = 4 * kMiB;
  limits_.held_bytes_max = 0;
  limits_.unread_kept = std::chrono::milliseconds(0);
  restart();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 2 * kMiB) {
    reader_->will_read(range(at, 2 * kMiB));
  }
  while (received() < 10 * kMiB) std::this_thread::yield();
  EXPECT_FALSE(read(0, 10 * kMiB));
  EXPECT_EQ(received(), 10 * kMiB) << "the cache has them";
}

TEST_F(CellReaderTest, WhatIsReadOnceIsNotCached) {
  limits_.held_bytes_max = 4 * kMiB;
  limits_.unread_kept = std::chrono::minutes(5);
  restart();
  reader_->will_read_once();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 2 * kMiB)
    reader_->will_read(range(at, 2 * kMiB));
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 100'000)
    EXPECT_FALSE(read(at, std::min<std::uint64_t>(100'000, 10 * kMiB - at)));
  EXPECT_EQ(received(), 10 * kMiB) << "bytes were received twice";
  reader_.reset();
  EXPECT_LE(cached_bytes(), kMiB) << "readers took nearly all of it";
}

TEST_F(CellReaderTest, WhatReadersLeaveIsCached) {
  limits_.held_bytes_max = 0;
  restart();
  reader_->will_read_once();
  // The second container begins in the last cell of the first one.
  EXPECT_FALSE(read(0, 2 * kMiB + 8192));
  EXPECT_FALSE(read(5 * kMiB, 10));
  EXPECT_FALSE(read(6 * kMiB, 3 * kCacheCellBytes));
  const auto before = received();
  reader_.reset();
  EXPECT_EQ(cached_bytes() / kCacheCellBytes, 2U) << "two cells of which a part was not taken";
  restart();
  EXPECT_FALSE(read(2 * kMiB + 8192, kCacheCellBytes - 8192));
  EXPECT_FALSE(read(5 * kMiB + 5000, 10));
  EXPECT_EQ(received(), before);
}

TEST_F(CellReaderTest, WhatIsNotReadSoonMakesRoomForAReaderOfAll) {
  limits_.bytes_max = 4 * kMiB;
  limits_.unread_kept = std::chrono::milliseconds(0);
  restart();
  reader_->will_read_once();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 2 * kMiB) {
    reader_->will_read(range(at, 2 * kMiB));
  }
  while (received() < 10 * kMiB) std::this_thread::yield();
  EXPECT_FALSE(read(0, 10 * kMiB));
  EXPECT_EQ(received(), 10 * kMiB) << "the cache has them";
}

TEST_F(CellReaderTest, WhatIsCachedAlreadyServesAReaderOfAll) {
  EXPECT_FALSE(read(0, 3 * kMiB));
  restart();
  reader_->will_read_once();
  const auto before = received();
  EXPECT_FALSE(read(0, 3 * kMiB));
  EXPECT_EQ(received(), before);
}

TEST_F(CellReaderTest, AReaderOfAllMayLeaveMoreUnread) {
  limits_.bytes_max = 4 * kMiB;
  limits_.unread_kept = std::chrono::minutes(5);
  restart();
  reader_->will_read_once();
  for (std::uint64_t at = 0; at < 10 * kMiB; at += kMiB) reader_->will_read(range(at, kMiB));
  wait_until([this] { return received() >= 5 * kMiB; });
  EXPECT_FALSE(read(0, 10));
  EXPECT_EQ(gets(), 5U) << "as much as may be in flight, and a quarter";
  EXPECT_FALSE(read(0, 10 * kMiB));
  EXPECT_EQ(received(), 10 * kMiB);
}

TEST_F(CellReaderTest, AReaderOfAllRequestsWhatTheRoundTripNeeds) {
  cache_bytes_ = 0;
  limits_.bytes_max = 4 * kMiB;
  limits_.near_bytes_max = 2 * kMiB;
  limits_.unread_kept = std::chrono::minutes(5);
  for (const auto& [milliseconds, requested] :
       {std::pair(0, 2U), std::pair(20, 2U), std::pair(150, 3U), std::pair(5000, 5U)}) {
    bucket_.set_round_trip(std::chrono::milliseconds(milliseconds));
    restart();
    reader_->will_read_once();
    const auto before = gets();
    for (std::uint64_t at = 0; at < 10 * kMiB; at += kMiB) reader_->will_read(range(at, kMiB));
    wait_until([&, least = requested] { return gets() - before >= least; });
    EXPECT_FALSE(read(9 * kMiB, 10)) << "a reader does not wait for that";
    EXPECT_EQ(gets() - before, requested + 1) << milliseconds << " ms";
    EXPECT_FALSE(read(0, 10 * kMiB));
  }
}

TEST_F(CellReaderTest, AFailureIsKeptForAWhile) {
  bucket_.set_faults([](std::uint64_t, bucket::RequestKind kind, const std::string&) {
    return kind == bucket::RequestKind::kGet ? test::Fault::kBefore : test::Fault::kNone;
  });
  const auto failed = read(0, 10);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(read(5, 10));
  EXPECT_EQ(gets(), 1U) << "a second try waits for the store again";
  bucket_.set_faults({});
  EXPECT_FALSE(read(kMiB, 10)) << "another range is requested";
  limits_.failure_kept = std::chrono::milliseconds(0);
  restart();
  EXPECT_FALSE(read(0, 10));
}

TEST_F(CellReaderTest, ASilentStoreIsWaitedForOnce) {
  limits_.silence = std::chrono::milliseconds(0);
  limits_.failure_kept = std::chrono::minutes(5);
  restart();
  bucket_.set_faults([](std::uint64_t, bucket::RequestKind kind, const std::string&) {
    return kind == bucket::RequestKind::kGet ? test::Fault::kBefore : test::Fault::kNone;
  });
  EXPECT_TRUE(read(0, 10));
  const auto failed = read(kMiB, 10);
  ASSERT_TRUE(failed) << "a reader that tries another place";
  EXPECT_EQ(failed->code(), ErrorCode::kUnavailable);
  EXPECT_EQ(gets(), 1U);
  bucket_.set_faults({});
  limits_.failure_kept = std::chrono::milliseconds(0);
  restart();
  EXPECT_FALSE(read(kMiB, 10)) << "the store is asked again";
}

TEST_F(CellReaderTest, AShortObjectIsCorrupt) {
  const std::array<std::span<const std::byte>, 1> parts{std::span(content_).first(kMiB)};
  ASSERT_TRUE(bucket_.put(kObject, parts, {}));
  const auto failed = read(kMiB - 10, 100);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), ErrorCode::kCorrupt);
}

TEST_F(CellReaderTest, RandomReadsReturnTheObjectsBytes) {
  cache_bytes_ = 3 * kMiB;
  limits_.held_bytes_max = kMiB;
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    if (round % 5 == 0) restart();
    if (round % 10 == 2) reader_->will_read_once();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      const auto seed = random();
      threads.emplace_back([this, seed] {
        std::mt19937_64 own(seed);
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
        for (int j = 0; j < 6; ++j) {
          const auto offset = own() % kObjectBytes;
          ranges.emplace_back(offset,
                              own() % std::min<std::uint64_t>(kObjectBytes - offset + 1,
                                                              own() % 2 != 0 ? 9 : 900'000));
        }
        if (own() % 2 == 0) reader_->will_read(range(ranges[0].first, ranges[0].second));
        EXPECT_FALSE(read_all(ranges));
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST_F(CellReaderTest, AReadThatHangsEndsWithTheReads) {
  ASSERT_FALSE(read(0, 100));
  bucket_.fail_at(bucket_.requests(), test::Fault::kHangs, 1000);
  std::optional<Error> error;
  std::thread waiting([&] { error = read_all({{5 * kMiB, 100}}, false); });
  while (gets() < 2) std::this_thread::yield();
  reader_->end_reads();
  bucket_.interrupt_reads();
  waiting.join();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnavailable);
}

TEST_F(CellReaderTest, AfterTheEndOfReadsOnlyKnownBytesAreRead) {
  ASSERT_FALSE(read(0, 100));
  reader_->end_reads();
  const auto before = bucket_.requests();
  EXPECT_FALSE(read(0, 100));
  const auto error = read(5 * kMiB, 3 * kMiB);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnavailable);
  reader_->will_read(range(8 * kMiB, kMiB));
  EXPECT_EQ(bucket_.requests(), before);
}

}  // namespace
}  // namespace varve::remote

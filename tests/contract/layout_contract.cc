// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of layout::Layout.
#include <latch>

#include "layout_benches.h"
#include "support/same_bytes.h"

namespace varve::layout {
namespace {

class LayoutContract : public testing::TestWithParam<Kind> {
 protected:
  using Ids = std::set<ChunkId>;

  void SetUp() override {
    bench_.reset();
    if (GetParam() == Kind::kCategory) {
      bench_ = std::make_unique<CategoryBench>();
    } else if (GetParam() == Kind::kCategorySealed) {
      bench_ = std::make_unique<CategoryBench>(CategoryBench::Form::kSealed);
    } else if (GetParam() == Kind::kCounting) {
      bench_ = std::make_unique<CountingBench>();
    } else {
      bench_ = std::make_unique<SeriesBench>(GetParam());
    }
  }
  Layout& layout() { return bench_->layout(); }

  VersionNumber open() {
    open_ = static_cast<VersionNumber>(++last_number_);
    live_.clear();
    bench_->open(*open_);
    return *open_;
  }
  ChunkId place(std::size_t bytes) {
    const auto raw = test::noise(bytes, ++content_);
    const auto id =
        must(bench_->place(fingerprinter_->fingerprint(base::as_bytes(raw)), base::as_bytes(raw)));
    EXPECT_TRUE(is_pool(id) || id.birth() == *open_);
    EXPECT_TRUE(content_of_.emplace(id, raw).second) << "an id was given twice";
    live_.insert(id);
    return id;
  }
  void seal() {
    std::vector<base::IdRun> runs;
    for (const auto id : live_) runs.push_back({id, 1});
    bench_->seal(*open_, base::IdRuns::from(std::move(runs)));
    sealed_[*open_] = std::move(live_);
    live_.clear();
    open_.reset();
  }
  void abandon() {
    bench_->abandon(*open_);
    live_.clear();
    open_.reset();
  }
  void remove(const std::vector<VersionNumber>& numbers) {
    bench_->remove(numbers);
    for (const auto number : numbers) sealed_.erase(number);
  }

  // Reads a chunk through the interface alone, and checks all that the layout says about it.
  std::string read(ChunkId id) {
    const auto where = must(layout().locate(id));
    EXPECT_LE(where.first, id);
    const auto skip = static_cast<std::uint32_t>(id.value - where.first.value);
    EXPECT_LT(skip, where.count);
    const auto header = must(layout().header(where.container));
    EXPECT_EQ(header->number, where.container);
    const auto& chunk = header->chunks.at(where.index + skip);
    EXPECT_EQ(chunk.id, id);
    const auto& frame = header->frames.at(chunk.frame);
    EXPECT_EQ(frame.codec, Codec::kNone);
    std::vector<std::byte> stored(frame.stored_bytes);
    must(layout().read_data(where.container, frame.offset, stored));
    base::AlignedBuffer room(room_for(stored.size()));
    const auto again =
        must(layout().read_once(where.container, frame.offset, stored.size(), room.span()));
    EXPECT_TRUE(test::same_bytes(again, stored));
    must(layout().place_of(where.container));
    std::vector<std::byte> raw(frame.raw_bytes);
    must(layout().codec().decode(format::place_of_frame(*header, chunk.frame), frame, stored, raw));
    const auto part = std::span(raw).subspan(chunk.frame_offset, chunk.raw_bytes);
    EXPECT_EQ(fingerprinter_->fingerprint(part), chunk.fingerprint);
    return std::string(base::as_text(part));
  }
  // The content of a chunk that may be written or not.
  std::string read_any(ChunkId id) {
    if (const auto waiting = layout().read_unwritten(id)) {
      return std::string(base::as_text(std::span<const std::byte>(*waiting)));
    }
    return read(id);
  }
  void check_sealed() {
    for (const auto& [number, ids] : sealed_) {
      for (const auto id : ids) ASSERT_TRUE(read(id) == content_of_.at(id));
    }
  }
  void check_open() {
    for (const auto id : live_) ASSERT_TRUE(read_any(id) == content_of_.at(id));
  }

  std::unique_ptr<Bench> bench_;
  std::map<ChunkId, std::string> content_of_;  // Content of every chunk that was ever placed.
  std::map<VersionNumber, Ids> sealed_;
  std::optional<VersionNumber> open_;
  Ids live_;
  std::uint32_t last_number_ = 0;
  std::uint64_t content_ = 0;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
};

TEST_P(LayoutContract, IdsAreConsecutiveAndReadableAtEachStep) {
  open();
  std::map<VersionNumber, std::uint32_t> next;  // By birth: the pool's differs.
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto id = place(100 + i);
    EXPECT_EQ(id.ordinal(), next[id.birth()]++);
  }
  EXPECT_LE(next.size(), 2U);
  check_open();
  must(layout().flush());
  EXPECT_EQ(layout().unwritten_bytes(), 0U);
  for (const auto id : live_) EXPECT_FALSE(layout().read_unwritten(id));
  check_open();
  must(layout().sync());
  seal();
  check_sealed();
}

TEST_P(LayoutContract, BatchesAnswerEachReadWithItsOwnBytes) {
  open();
  for (std::size_t i = 0; i < 40; ++i) {
    place(3000 + i);
    if (i % 10 == 9) must(layout().flush());
  }
  const Ids ids = live_;
  seal();
  std::map<ContainerNumber, std::uint64_t> places;
  std::vector<DataRead> reads;
  std::vector<base::AlignedBuffer> rooms;
  std::vector<std::vector<std::byte>> wanted;
  for (const auto id : ids) {
    const auto where = must(layout().locate(id));
    const auto header = must(layout().header(where.container));
    const auto& chunk = header->chunks.at(where.index + (id.value - where.first.value));
    const auto& frame = header->frames.at(chunk.frame);
    places[where.container] = must(layout().place_of(where.container));
    wanted.emplace_back(frame.stored_bytes);
    must(layout().read_data(where.container, frame.offset, wanted.back()));
    rooms.emplace_back(room_for(frame.stored_bytes));
    reads.push_back({where.container, frame.offset, frame.stored_bytes, rooms.back().span()});
  }
  // The ids of one store follow each other, so every other read comes from the far end.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    order.push_back(i % 2 == 0 ? i / 2 : ids.size() - 1 - i / 2);
  }
  std::vector<DataRead> batch;
  for (const auto i : order) batch.push_back(reads[i]);
  std::latch answered(static_cast<std::ptrdiff_t>(batch.size()));
  layout().read_many(batch, [&](std::size_t position, Result<std::span<const std::byte>> got) {
    EXPECT_TRUE(test::same_bytes(must(std::move(got)), wanted.at(order.at(position))));
    answered.count_down();
  });
  answered.wait();
  std::set<std::uint64_t> different;
  for (const auto& [container, place] : places) different.insert(place);
  EXPECT_EQ(different.size(), places.size());
}

TEST_P(LayoutContract, PlacedBytesAreThoseOfTheVersion) {
  open();
  place(5000);
  place(300);
  EXPECT_EQ(layout().placed().raw, 5300U);
  must(layout().flush());
  EXPECT_GE(layout().placed().stored, 5300U);
  seal();
  open();
  EXPECT_EQ(layout().placed().raw, 0U);
}

TEST_P(LayoutContract, PlacingNeedsAVersion) {
  const std::string raw(10, 'x');
  const auto placed = bench_->place(Fingerprint{}, base::as_bytes(raw));
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code(), ErrorCode::kInvalid);
}

TEST_P(LayoutContract, AbandonedChunksAreGoneAndOthersStay) {
  open();
  place(4000);
  seal();
  const auto before = bench_->stored_bytes();
  open();
  const auto written = place(3000);
  must(layout().sync());
  const auto waiting = place(2000);
  abandon();
  EXPECT_EQ(test::code_of(layout().locate(written)), ErrorCode::kCorrupt);
  EXPECT_EQ(test::code_of(layout().locate(waiting)), ErrorCode::kCorrupt);
  EXPECT_FALSE(layout().read_unwritten(waiting));
  EXPECT_EQ(bench_->stored_bytes(), before);
  check_sealed();
}

TEST_P(LayoutContract, SyncedChunksOfAnOpenVersionSurviveTheProcess) {
  const auto number = open();
  const auto first = place(4000);
  must(layout().sync());
  bench_->reopen();
  bench_->open(number);
  const auto second = place(10);
  // The pool gives each process another birth.
  EXPECT_TRUE(is_pool(first) || is_pool(second) || second == first.plus(1));
  EXPECT_NE(second, first);
  check_open();
  seal();
  check_sealed();
}

TEST_P(LayoutContract, DeletedContainersAreStale) {
  const auto number = open();
  const auto id = place(4000);
  seal();
  const auto container = must(layout().locate(id)).container;
  remove({number});
  bench_->reopen();  // Forgets what it may have cached.
  std::vector<std::byte> out(10);
  EXPECT_EQ(test::code_of(layout().header(container)), ErrorCode::kStale);
  EXPECT_EQ(layout().read_data(container, 0, out).error().code(), ErrorCode::kStale);
  EXPECT_EQ(test::code_of(layout().place_of(container)), ErrorCode::kStale);
  EXPECT_EQ(test::code_of(layout().locate(id)), ErrorCode::kCorrupt);
}

TEST_P(LayoutContract, DeletingAllVersionsFreesAllBytes) {
  const auto one = open();
  const auto shared = place(4000);
  place(70000);
  seal();
  const auto two = open();
  live_.insert(shared);
  place(50000);
  seal();
  const auto full = bench_->stored_bytes();
  remove({one});
  EXPECT_LE(bench_->stored_bytes(), full);
  check_sealed();
  remove({two});
  EXPECT_EQ(bench_->stored_bytes(), 0U);
}

// Random histories against the model: sets of ids, and the content of each id.
TEST_P(LayoutContract, WhatVersionsReferToIsReadableAfterAnyHistory) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SetUp();
    content_of_.clear();
    sealed_.clear();
    open_.reset();
    last_number_ = 0;
    std::mt19937_64 random(seed);
    for (int step = 0; step < 40; ++step) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          if (!open_) {
            open();
            // A version refers to chunks of the newest one.
            if (sealed_.empty()) break;
            for (const auto id : sealed_.rbegin()->second) {
              if (random() % 4 != 0) live_.insert(id);
            }
          }
          for (auto n = random() % 30; n > 0; --n) place(1 + random() % 3000);
          break;
        }
        case 3:
          if (open_) seal();
          break;
        case 4:
          if (open_ && random() % 3 == 0) abandon();
          break;
        case 5: {
          if (open_) break;
          std::vector<VersionNumber> gone;
          for (const auto& entry : sealed_) {
            if (random() % 3 == 0) gone.push_back(entry.first);
          }
          const auto before = bench_->stored_bytes();
          if (!gone.empty()) remove(gone);
          ASSERT_LE(bench_->stored_bytes(), before);
          break;
        }
        case 6:
          must(random() % 2 == 0 ? layout().flush() : layout().sync());
          break;
        default:
          if (open_) break;
          bench_->reopen();
      }
      if (step % 4 == 3) {
        check_sealed();
        check_open();
      }
    }
    if (open_) abandon();
    std::vector<VersionNumber> all;
    for (const auto& entry : sealed_) all.push_back(entry.first);
    if (!all.empty()) remove(all);
    EXPECT_EQ(bench_->stored_bytes(), 0U);
    for (const auto& entry : content_of_) {
      ASSERT_EQ(test::code_of(layout().locate(entry.first)), ErrorCode::kCorrupt);
    }
  }
}

std::string name_of(const testing::TestParamInfo<Kind>& kind) {
  constexpr const char* kNames[] = {"Category",         "CategorySealed", "Counting",
                                    "SeriesOwn",        "SeriesShared",   "SeriesMixed",
                                    "SeriesMixedSealed"};
  return kNames[static_cast<std::size_t>(kind.param)];
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutContract,
                         testing::Values(Kind::kCategory, Kind::kCategorySealed, Kind::kCounting,
                                         Kind::kSeriesOwn, Kind::kSeriesShared, Kind::kSeriesMixed,
                                         Kind::kSeriesMixedSealed),
                         name_of);

}  // namespace
}  // namespace varve::layout

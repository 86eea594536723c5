// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of layout::Layout.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "base/thread_pool.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "counting_layout.h"
#include "format/fingerprinter.h"
#include "format/frame_codec.h"
#include "io/memory_file_system.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "store/folder_store.h"
#include "support/temp_repository.h"

namespace varve::layout {
namespace {

using test::must;

/// A layout with the records that its implementation expects beside it.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual Layout& layout() = 0;
  virtual void open(VersionNumber number) = 0;
  virtual void seal(VersionNumber number, const base::IdRuns& live) = 0;
  virtual void abandon(VersionNumber number) = 0;
  virtual void remove(const std::vector<VersionNumber>& numbers) = 0;
  /// Ends the process that has the layout, and begins another.
  virtual void reopen() = 0;
  /// Returns the bytes of all files.
  virtual std::uint64_t stored_bytes() = 0;
};

class CountingBench final : public Bench {
 public:
  Layout& layout() override { return *layout_; }
  void open(VersionNumber number) override { must(layout_->begin_version(number)); }
  void seal(VersionNumber number, const base::IdRuns& live) override {
    must(layout_->on_seal(number, live));
  }
  void abandon(VersionNumber number) override { must(layout_->on_delete(number)); }
  void remove(const std::vector<VersionNumber>& numbers) override {
    for (const auto number : numbers) must(layout_->on_delete(number));
  }
  void reopen() override { layout_ = std::make_unique<test::CountingLayout>(disk_); }
  std::uint64_t stored_bytes() override { return disk_.bytes(); }

 private:
  test::CountedContainers disk_;
  std::unique_ptr<test::CountingLayout> layout_ = std::make_unique<test::CountingLayout>(disk_);
};

class CategoryBench final : public Bench {
 public:
  CategoryBench() {
    must(files_->make_directory("/r"));
    start();
  }
  Layout& layout() override { return *layout_; }
  void open(VersionNumber number) override {
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(catalog::put_version(txn, record(number, VersionState::kOpen)));
    const auto known =
        must(txn.get(meta::catalog::kVersionChunks, meta::version_key(kSeries, number)));
    if (!known) must(open_window(txn, kSeries, kStore, number));
    must(txn.commit());
    must(layout_->begin_version(number));
  }
  void seal(VersionNumber number, const base::IdRuns& live) override {
    must(layout_->on_seal(number, live));
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(catalog::put_version_chunks(txn, kSeries, number, live));
    must(catalog::put_retention(txn, kSeries, number, {false, {}}));
    must(catalog::put_version(txn, record(number, VersionState::kSealed)));
    must(txn.commit());
  }
  void abandon(VersionNumber number) override {
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(catalog::erase_version(txn, kSeries, number));
    must(txn.commit());
    must(layout_->on_delete(number));
  }
  void remove(const std::vector<VersionNumber>& numbers) override {
    const CategoryLayout::Exclusive exclusive(*layout_, CategoryLayout::Exclusive::For::kDeleting);
    const auto snapshot = must(meta::ReadTxn::begin(*catalog_));
    const auto plan = must(plan_deletion(*layout_, snapshot, numbers));
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    for (const auto number : numbers) {
      must(catalog::erase_version(txn, kSeries, number));
      must(catalog::erase_retention(txn, kSeries, number));
    }
    must(plan.ledger.apply(txn));
    must(txn.commit());
    must(layout_->free(plan.ledger.cuts()));
  }
  void reopen() override {
    layout_.reset();
    store_.reset();
    catalog_.reset();
    start();
  }
  std::uint64_t stored_bytes() override { return must(files_->tree_bytes("/r/s")); }

 private:
  static constexpr SeriesId kSeries{7};
  static constexpr StoreId kStore{7};

  void start() {
    meta::EnvOptions environment;
    environment.tables = meta::catalog::kTables;
    environment.map_bytes = std::size_t{64} << 20;
    catalog_ = std::make_unique<meta::Env>(must(meta::Env::open(directory_.path(), environment)));
    store_ = std::make_unique<store::FolderStore>(*files_, "/r/s");
    CategoryLayoutOptions options;
    options.series = kSeries;
    options.store = kStore;
    layout_ = must(CategoryLayout::open(*catalog_, *store_, *codec_, &pool_, options));
  }
  static catalog::VersionRecord record(VersionNumber number, VersionState state) {
    catalog::VersionRecord record;
    record.series = kSeries;
    record.number = number;
    record.name = "v" + std::to_string(static_cast<std::uint32_t>(number));
    record.state = state;
    record.root.mode = S_IFDIR | 0755;
    return record;
  }

  test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_ = io::make_memory_file_system();
  base::ThreadPool pool_{2, "test"};
  const std::unique_ptr<const format::FrameCodec> codec_ =
      format::make_plain_frame_codec({Codec::kNone, 1});
  std::unique_ptr<meta::Env> catalog_;
  std::unique_ptr<store::FolderStore> store_;
  std::unique_ptr<CategoryLayout> layout_;
};

enum class Kind { kCategory, kCounting };

class LayoutContract : public testing::TestWithParam<Kind> {
 protected:
  using Ids = std::set<ChunkId>;

  void SetUp() override {
    if (GetParam() == Kind::kCategory) {
      bench_ = std::make_unique<CategoryBench>();
    } else {
      bench_ = std::make_unique<CountingBench>();
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
        must(layout().place(fingerprinter_->fingerprint(base::as_bytes(raw)), base::as_bytes(raw)));
    EXPECT_EQ(id.birth(), *open_);
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
    EXPECT_EQ(base::checksum64(stored), frame.checksum);
    base::AlignedBuffer room(room_for(stored.size()));
    const auto again =
        must(layout().read_once(where.container, frame.offset, stored.size(), room.span()));
    EXPECT_TRUE(std::ranges::equal(again, stored));
    must(layout().place_of(where.container));
    const auto part = std::span(stored).subspan(chunk.frame_offset, chunk.raw_bytes);
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
  const auto first = place(1000);
  for (std::uint32_t i = 1; i < 50; ++i) EXPECT_EQ(place(100 + i), first.plus(i));
  check_open();
  must(layout().flush());
  EXPECT_EQ(layout().unwritten_bytes(), 0U);
  for (const auto id : live_) EXPECT_FALSE(layout().read_unwritten(id));
  check_open();
  must(layout().sync());
  seal();
  check_sealed();
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
  const auto placed = layout().place(Fingerprint{}, base::as_bytes(raw));
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
  EXPECT_EQ(place(10), first.plus(1));
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

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutContract, testing::Values(Kind::kCategory, Kind::kCounting),
                         [](const auto& one) {
                           return one.param == Kind::kCategory ? "Category" : "Counting";
                         });

}  // namespace
}  // namespace varve::layout

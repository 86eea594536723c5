// SPDX-License-Identifier: Apache-2.0
// The layouts that the contract checks, each with the records beside it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <algorithm>
#include <map>
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
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "counting_layout.h"
#include "format/fingerprinter.h"
#include "format/frame_codec.h"
#include "io/memory_file_system.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "layout/pool_store.h"
#include "layout/series_layout.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "store/folder_store.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::layout {

using test::must;

/// A layout with the records that its implementation expects beside it.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual Layout& layout() = 0;
  virtual Result<ChunkId> place(const Fingerprint& fingerprint, std::span<const std::byte> raw) {
    return layout().place(fingerprint, raw);
  }
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

class CategoryBench : public Bench {
 public:
  enum class Form : bool { kPlain, kSealed };
  explicit CategoryBench(Form form = Form::kPlain)
      : keys_(form == Form::kSealed ? test::test_keys() : nullptr),
        codec_(form == Form::kSealed ? test::sealed_codec({Codec::kNone, 1}, keys_)
                                     : format::make_plain_frame_codec({Codec::kNone, 1})) {
    must(files_->make_directory("/r"));
    start();
  }
  Layout& layout() override { return *layout_; }
  void open(VersionNumber number) override {
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(catalog::put_version(txn, record(number, VersionState::kOpen)));
    const auto known =
        must(txn.get(meta::catalog::kVersionChunks, meta::version_key(kSeries, number)));
    if (!known) (void)must(open_window(txn, kSeries, kStore, number));
    must(txn.commit());
    must(layout().begin_version(number));
  }
  void seal(VersionNumber number, const base::IdRuns& live) override {
    must(layout().on_seal(number, live));
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(seal_shared(txn, number, live));
    must(catalog::put_version_chunks(txn, kSeries, number, live));
    must(catalog::put_retention(txn, kSeries, number, {false, {}}));
    must(catalog::put_version(txn, record(number, VersionState::kSealed)));
    must(txn.commit());
  }
  void abandon(VersionNumber number) override {
    auto txn = must(meta::WriteTxn::begin(*catalog_));
    must(catalog::erase_version(txn, kSeries, number));
    must(txn.commit());
    must(layout().on_delete(number));
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
    must(delete_shared(txn, numbers));
    must(txn.commit());
    must(layout_->free(plan.ledger.cuts()));
  }
  void reopen() override {
    stop();
    start();
  }
  std::uint64_t stored_bytes() override { return must(files_->tree_bytes("/r/s")); }

 protected:
  static constexpr SeriesId kSeries{7};
  static constexpr StoreId kStore{7};

  // Add the changes of a pool to a commit.
  virtual Result<void> seal_shared(meta::WriteTxn& /*txn*/, VersionNumber /*number*/,
                                   const base::IdRuns& /*live*/) {
    return {};
  }
  virtual Result<void> delete_shared(meta::WriteTxn& /*txn*/,
                                     const std::vector<VersionNumber>& /*numbers*/) {
    return {};
  }

  void stop() {
    layout_.reset();
    store_.reset();
    catalog_.reset();
  }
  void start() {
    meta::EnvOptions environment;
    environment.tables = meta::catalog::kTables;
    environment.map_bytes = std::size_t{64} << 20;
    environment.keys.ring = keys_;
    catalog_ = std::make_unique<meta::Env>(must(meta::Env::open(directory_.path(), environment)));
    store_ = std::make_unique<store::FolderStore>(*files_, "/r/s");
    CategoryLayoutOptions options;
    options.series = kSeries;
    options.store = kStore;
    layout_ = must(CategoryLayout::open(*catalog_, *store_, *codec_, &compressors_, options));
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
  base::ThreadPool compressors_{2, "test"};
  const std::shared_ptr<const crypto::KeyRing> keys_;
  const std::unique_ptr<const format::FrameCodec> codec_;
  std::unique_ptr<meta::Env> catalog_;
  std::unique_ptr<store::FolderStore> store_;
  std::unique_ptr<CategoryLayout> layout_;
};

enum class Kind {
  kCategory,
  kCategorySealed,
  kCounting,
  kSeriesOwn,
  kSeriesShared,
  kSeriesMixed,
  kSeriesMixedSealed,
};

/// A series' layout with a pool beside it. `kind` tells which chunks go to the pool.
class SeriesBench final : public CategoryBench {
 public:
  explicit SeriesBench(Kind kind)
      : CategoryBench(kind == Kind::kSeriesMixedSealed ? Form::kSealed : Form::kPlain),
        kind_(kind) {
    start_all();
  }
  Layout& layout() override { return *all_; }
  Result<ChunkId> place(const Fingerprint& fingerprint, std::span<const std::byte> raw) override {
    const bool shared = kind_ == Kind::kSeriesShared ||
                        (kind_ != Kind::kSeriesOwn && std::to_integer<int>(raw[0]) % 2 == 0);
    return shared ? all_->place_shared(fingerprint, raw) : all_->place(fingerprint, raw);
  }
  void seal(VersionNumber number, const base::IdRuns& live) override {
    CategoryBench::seal(number, live);
    must(pool_->sweep(pool_->unpin({kSeries, number})));
  }
  void abandon(VersionNumber number) override {
    CategoryBench::abandon(number);
    must(pool_->sweep(pool_->unpin({kSeries, number})));
  }
  void remove(const std::vector<VersionNumber>& numbers) override {
    std::vector<PoolOwner> gone;
    for (const auto number : numbers) gone.push_back({kSeries, number});
    const PoolStore::Exclusive exclusive(*pool_);
    const auto snapshot = must(meta::ReadTxn::begin(*catalog_));
    plan_.emplace(must(pool_->plan_deletion(snapshot, gone)));
    CategoryBench::remove(numbers);
    must(pool_->free(*plan_));
    plan_.reset();
  }
  void reopen() override {
    all_.reset();
    pool_.reset();
    CategoryBench::reopen();
    start_all();
  }
  std::uint64_t stored_bytes() override {
    return CategoryBench::stored_bytes() + must(files_->tree_bytes("/r/pool"));
  }
  /// Changes a byte of a container's data on disk, and reopens the layout, which may have the file
  /// open.
  void damage(ContainerNumber container, std::uint32_t offset) {
    const auto store = is_pool(container) ? kPoolStore : kStore;
    const auto record = [&] {
      const auto txn = must(meta::ReadTxn::begin(*catalog_));
      return must(catalog::find_container(txn, store, container)).value();
    }();
    std::vector<std::byte> byte(1);
    must(all_->read_data(container, offset, byte));
    byte[0] ^= std::byte{0x40};
    store::SegmentStore& files = is_pool(container) ? pool_->segments() : *store_;
    must(files.correct(record.segment, {{record.offset + record.header_bytes + offset, byte}}));
    reopen();
  }

 private:
  void start_all() {
    const PoolParts parts{*catalog_, *codec_, &compressors_};
    pool_ = must(PoolStore::open(parts, std::make_unique<store::FolderStore>(*files_, "/r/pool")));
    all_ = std::make_unique<SeriesLayout>(*layout_,
                                          [this]() -> Result<PoolStore*> { return pool_.get(); });
  }
  Result<void> seal_shared(meta::WriteTxn& txn, VersionNumber number,
                           const base::IdRuns& live) override {
    VARVE_TRY_ASSIGN(const auto uses, catalog::pool_use_of(txn, live));
    return pool_->add_users(txn, {kSeries, number}, uses);
  }
  Result<void> delete_shared(meta::WriteTxn& txn, const std::vector<VersionNumber>&) override {
    return plan_->apply(txn);
  }

  const Kind kind_;
  std::unique_ptr<PoolStore> pool_;
  std::unique_ptr<SeriesLayout> all_;
  std::optional<PoolDeletion> plan_;
};

}  // namespace varve::layout

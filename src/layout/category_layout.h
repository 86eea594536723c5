// SPDX-License-Identifier: Apache-2.0
// The lineage profile's layout of one series. New chunks are appended to segments of the active
// set. The arranger moves them to volumes when they fall out of use (MFDedup, FAST'21 §3).
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/frame_codec.h"
#include "layout/header_cache.h"
#include "layout/layout.h"
#include "layout/layout_metrics.h"
#include "layout/segment_ledger.h"
#include "meta/lmdb.h"
#include "store/container_writer.h"
#include "store/segment_files.h"

namespace varve::layout {

struct CategoryLayoutOptions {
  SeriesId series{};  ///< Whose versions refer to the chunks.
  StoreId store{};    ///< Where the chunks are.
  bool read_only = false;
  /// Null: the layout keeps open files of its own. Outlives the layout.
  store::OpenFiles* open_files = nullptr;
  const LayoutMetrics* metrics = nullptr;  ///< Null: nothing is counted. Outlives the layout.
};

/// The layout of one series with an active set and volumes. Thread-safe. Lock order:
/// arrange_mutex_, sync_mutex_, writer_mutex_, mutex_.
class CategoryLayout final : public Layout {
 public:
  /// The lock for moving or deleting stored chunks: one holder at a time. Readers and the writer of
  /// an open version need no lock. A deletion asks the arranger to make way, which takes one step
  /// at most.
  class Exclusive {
   public:
    enum class For { kArranging, kDeleting };
    Exclusive(CategoryLayout& layout, For what);
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// Opens the layout. Unless read-only, prepares the store and removes the files and bytes
  /// that a crash left. `compressors` may be null if read-only.
  /// Lifetime: `catalog`, `store`, `codec` and `compressors` must outlive the layout.
  [[nodiscard]] static Result<std::unique_ptr<CategoryLayout>> open(
      const meta::Env& catalog, store::SegmentStore& store, const format::FrameCodec& codec,
      base::ThreadPool* compressors, const CategoryLayoutOptions& options);

  [[nodiscard]] Result<void> begin_version(VersionNumber number) override;
  [[nodiscard]] Result<ChunkId> place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw) override;
  [[nodiscard]] std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) override;
  [[nodiscard]] Result<void> flush() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] Result<void> on_seal(VersionNumber number, const base::IdRuns& live) override;
  [[nodiscard]] Result<void> on_delete(VersionNumber number) override;
  [[nodiscard]] PlacedBytes placed() const override;
  [[nodiscard]] std::uint64_t unwritten_bytes() const override {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(unwritten_, 0));
  }

  [[nodiscard]] const format::FrameCodec& codec() const override { return codec_; }
  [[nodiscard]] Result<LocationRun> locate(ChunkId id) override;
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override;
  [[nodiscard]] Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                                       std::span<std::byte> out) override;
  [[nodiscard]] Result<std::span<const std::byte>> read_once(ContainerNumber container,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room) override;
  [[nodiscard]] bool answers_later() const override { return store_.answers_later(); }
  void read_many(const std::vector<DataRead>& reads, const DataCompletion& done) override;
  void will_read_header(ContainerNumber container) override;
  void will_read_data(ContainerNumber container, std::uint32_t offset, std::size_t bytes) override;
  [[nodiscard]] Result<std::uint64_t> place_of(ContainerNumber container) override;

  /// Returns the place of a container, for messages.
  [[nodiscard]] std::string describe(ContainerNumber container);

  // ---- For the parts of src/layout that move and delete chunks. ----

  [[nodiscard]] const CategoryLayoutOptions& options() const { return options_; }
  [[nodiscard]] const meta::Env& catalog() const { return catalog_; }
  [[nodiscard]] store::SegmentStore& segment_store() { return store_; }
  [[nodiscard]] base::ThreadPool* compressors() { return compressors_; }
  [[nodiscard]] store::SegmentReader& segment_reader() { return reader_; }
  [[nodiscard]] store::NumberSource& numbers() { return numbers_; }
  /// Returns the counters. A caller that took numbers commits them together with its records.
  [[nodiscard]] catalog::CounterRecord counters() const;
  /// Returns whether a deletion waits for the arranger to make way.
  [[nodiscard]] bool make_way() const { return deletions_waiting_ != 0; }
  /// Frees files that no committed record names any more.
  [[nodiscard]] Result<void> free(const std::vector<FileCut>& cuts);

 private:
  CategoryLayout(const meta::Env& catalog, store::SegmentStore& store,
                 const format::FrameCodec& codec, base::ThreadPool* compressors,
                 CategoryLayoutOptions options);
  /// Starts the writer. The caller holds writer_mutex_ alone.
  void start_writer();
  /// Ends the writer, which must be flushed. The caller holds writer_mutex_ alone.
  void end_writer();
  /// Returns the error of reading a container, or kStale if the container is not there any more.
  [[nodiscard]] Error explain(const format::ContainerRecord& was, Error error);
  void on_written(store::WrittenContainer written);
  [[nodiscard]] Result<format::ContainerRecord> record(ContainerNumber container);

  /// Maximum memory of the cached headers, in bytes. These are the headers of about 1.5 GiB of
  /// chunks of the usual size, so random reads of an image do not read a header each time.
  static constexpr std::size_t kHeaderBytesCached = 12U << 20;

  const meta::Env& catalog_;
  store::SegmentStore& store_;
  const format::FrameCodec& codec_;
  base::ThreadPool* compressors_;
  const CategoryLayoutOptions options_;
  store::SegmentReader reader_;
  store::NumberSource numbers_;

  std::atomic<std::int64_t> unwritten_{0};  // Raw bytes that the writer has in memory.

  std::mutex arrange_mutex_;
  std::atomic<int> deletions_waiting_{0};
  std::mutex sync_mutex_;
  mutable std::mutex mutex_;
  VersionNumber number_{};
  std::uint32_t next_ordinal_ = 0;
  std::uint64_t placed_raw_ = 0;
  // Records of containers and chunks that are written but not yet in the catalog.
  std::map<std::uint64_t, LocationRun> new_locations_;
  std::unordered_map<ContainerNumber, format::ContainerRecord> new_containers_;

  HeaderCache headers_{kHeaderBytesCached};  // Its destructor waits for reads by reader_.

  // Held shared to use the writer, held alone to replace it.
  mutable std::shared_mutex writer_mutex_;
  VersionNumber writer_version_{};
  std::atomic<std::uint64_t> stored_by_ended_writers_{0};  // Since begin_version().
  std::unique_ptr<store::ContainerWriter> writer_;         // Last: its thread calls on_written().
};

}  // namespace varve::layout

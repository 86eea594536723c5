// SPDX-License-Identifier: Apache-2.0
// The lineage profile's layout of one series. New chunks are appended to segments of the active
// set. The arranger moves unused chunks to volumes (MFDedup, FAST'21 §3).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/frame_codec.h"
#include "layout/chunk_stream.h"
#include "layout/layout.h"
#include "layout/layout_metrics.h"
#include "layout/segment_ledger.h"
#include "layout/stored_chunks.h"
#include "meta/lmdb.h"
#include "store/segment_files.h"

namespace varve::store {
class FoundDamage;
}  // namespace varve::store

namespace varve::layout {

struct CategoryLayoutOptions {
  SeriesId series{};  ///< Series whose versions refer to the chunks.
  StoreId store{};    ///< Store of the chunks.
  bool read_only = false;
  /// Null: the layout keeps its own open files. Outlives the layout.
  store::OpenFiles* open_files = nullptr;
  const LayoutMetrics* metrics = nullptr;  ///< Null: nothing is counted. Outlives the layout.
  store::FoundDamage* damage = nullptr;    ///< Null: damage is not remembered. Outlives the layout.
};

/// The layout of one series with an active set and volumes. Thread-safe.
/// Lock order: arrange_mutex_, then the mutexes of the stream.
class CategoryLayout final : public Layout {
 public:
  /// The lock for moving or deleting stored chunks: one holder at a time. Readers and the writer of
  /// an open version need no lock. A deletion asks the arranger to make way; the arranger first
  /// finishes at most one step.
  class Exclusive {
   public:
    enum class For { kArranging, kDeleting };
    Exclusive(CategoryLayout& layout, For what);
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// Opens the layout. Unless read-only, prepares the store and removes the files and bytes left by
  /// a crash. `compressors` may be null if read-only.
  /// Lifetime: `catalog`, `store`, `codec` and `compressors` must outlive the layout.
  [[nodiscard]] static Result<std::unique_ptr<CategoryLayout>> open(
      const meta::Env& catalog, store::SegmentStore& store, const format::FrameCodec& codec,
      base::ThreadPool* compressors, const CategoryLayoutOptions& options);

  [[nodiscard]] Result<void> begin_version(VersionNumber number) override {
    return stream_.begin(number, options_.series, number);
  }
  /// Gives the next chunk of the version an ordinal of at least `next`. Call skip_to() after
  /// begin_version(), before place().
  void skip_to(std::uint32_t next) { stream_.skip_to(next); }
  [[nodiscard]] Result<ChunkId> place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw) override {
    return stream_.place(fingerprint, raw);
  }
  [[nodiscard]] std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) override {
    return stream_.read_unwritten(id);
  }
  [[nodiscard]] Result<void> flush() override { return stream_.flush(); }
  [[nodiscard]] Result<void> sync() override { return stream_.sync(); }
  [[nodiscard]] Result<void> on_seal(VersionNumber number, const base::IdRuns& live) override;
  [[nodiscard]] Result<void> on_delete(VersionNumber number) override;
  [[nodiscard]] PlacedBytes placed() const override { return stream_.placed(); }
  [[nodiscard]] std::uint64_t unwritten_bytes() const override { return stream_.unwritten_bytes(); }

  [[nodiscard]] const format::FrameCodec& codec() const override { return chunks_.codec(); }
  [[nodiscard]] Result<LocationRun> locate(ChunkId id) override { return chunks_.locate(id); }
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override {
    return chunks_.header(container);
  }
  [[nodiscard]] Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                                       std::span<std::byte> out) override {
    return chunks_.read_data(container, offset, out);
  }
  [[nodiscard]] Result<store::UnreadParts> read_around(ContainerNumber container,
                                                       std::uint32_t offset,
                                                       std::span<std::byte> out) override {
    return chunks_.read_around(container, offset, out);
  }
  [[nodiscard]] Result<std::span<const std::byte>> read_once(ContainerNumber container,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room) override {
    return chunks_.read_once(container, offset, bytes, room);
  }
  [[nodiscard]] bool answers_later() const override { return chunks_.answers_later(); }
  void read_many(const std::vector<DataRead>& reads, const DataCompletion& done) override {
    chunks_.read_many(reads, done);
  }
  bool drop(ContainerNumber container) override { return chunks_.drop(container); }
  void note_damage(const format::ContainerHeader& header, std::uint32_t frame,
                   const Error& error) override {
    chunks_.note_damage(header, frame, error);
  }
  void will_read_header(ContainerNumber container) override { chunks_.will_read_header(container); }
  void will_read_all(ContainerNumber container) override { chunks_.will_read_all(container); }
  void will_read_chunks(ContainerNumber container, std::uint32_t index,
                        std::uint32_t count) override {
    chunks_.will_read_chunks(container, index, count);
  }
  void will_read_data(ContainerNumber container, std::uint32_t offset, std::size_t bytes) override {
    chunks_.will_read_data(container, offset, bytes);
  }
  [[nodiscard]] Result<std::uint64_t> place_of(ContainerNumber container) override {
    return chunks_.place_of(container);
  }

  /// As StoredChunks::digest().
  [[nodiscard]] Result<std::uint64_t> digest(const base::IdRuns& ids) {
    return chunks_.digest(ids);
  }

  /// Returns the place of a container, for messages.
  [[nodiscard]] std::string describe(ContainerNumber container) {
    return chunks_.describe(container);
  }

  // ---- For the parts of src/layout that move and delete chunks. ----

  [[nodiscard]] const CategoryLayoutOptions& options() const { return options_; }
  [[nodiscard]] const meta::Env& catalog() const { return catalog_; }
  /// Returns the objects that the layout writes to.
  [[nodiscard]] StoreParts store_parts() {
    return {catalog_, store_, chunks_.codec(), compressors_, chunks_, numbers_, options_.metrics};
  }
  /// Returns whether a deletion waits for the arranger to make way.
  [[nodiscard]] bool make_way() const { return deletions_waiting_ != 0; }
  /// Frees files that no committed record names any more.
  [[nodiscard]] Result<void> free(const std::vector<FileCut>& cuts) { return chunks_.free(cuts); }

 private:
  CategoryLayout(const meta::Env& catalog, store::SegmentStore& store,
                 const format::FrameCodec& codec, base::ThreadPool* compressors,
                 CategoryLayoutOptions options);

  const meta::Env& catalog_;
  store::SegmentStore& store_;
  base::ThreadPool* compressors_;
  const CategoryLayoutOptions options_;
  StoredChunks chunks_;
  store::NumberSource numbers_;

  std::mutex arrange_mutex_;
  std::atomic<int> deletions_waiting_{0};
  ChunkStream stream_;
};

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
// Gives ids to new chunks and writes them to a store: the writing half of every layout.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "format/birth_mark.h"
#include "format/frame_codec.h"
#include "layout/layout.h"
#include "layout/layout_metrics.h"
#include "layout/segment_ledger.h"
#include "layout/stored_chunks.h"
#include "meta/lmdb.h"
#include "store/container_writer.h"
#include "store/segment_files.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// The objects with which code writes chunks to a store.
/// Lifetime: all of them outlive that code.
struct StoreParts {
  const meta::Env& catalog;
  store::SegmentStore& store;
  const format::FrameCodec& codec;
  base::ThreadPool* compressors = nullptr;  ///< Null if the repository is read-only.
  StoredChunks& chunks;
  store::NumberSource& numbers;
  const LayoutMetrics* metrics = nullptr;  ///< Null: nothing is counted.
  bool file_per_container = false;         ///< As ContainerWriterOptions::file_per_container.
  /// Called for each new container before the catalog or a reader knows it; may be empty.
  std::function<void(ContainerNumber)> on_container{};
  /// Changes other records in each commit that locates new chunks; may be empty.
  std::function<Result<void>(meta::WriteTxn&)> at_sync{};
};

/// The new chunks of one version, in files of their own. Thread-safe, but only one thread at a time
/// calls place().
class ChunkStream {
 public:
  explicit ChunkStream(const StoreParts& parts) : parts_(parts) {}
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  /// Starts or continues a birth: the next chunks get its ids, after those that the store has. A
  /// birth that has no chunks yet gets a mark. `version` of `series` stores the chunks.
  [[nodiscard]] Result<void> begin(VersionNumber birth, SeriesId series, VersionNumber version);
  /// Has the next chunk get an ordinal of at least `next`. Call it after begin(), before place().
  void skip_to(std::uint32_t next);
  /// These do the work of the functions of Layout with their names.
  [[nodiscard]] Result<ChunkId> place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw);
  [[nodiscard]] std::optional<std::vector<std::byte>> read_unwritten(ChunkId id);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<void> sync();
  [[nodiscard]] PlacedBytes placed() const;
  [[nodiscard]] std::uint64_t unwritten_bytes() const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(unwritten_, 0));
  }

  /// Returns the birth of the next chunks; 0 before begin().
  [[nodiscard]] VersionNumber birth() const;
  /// Returns the number of chunks of that birth, from the first on, that are on disk and in the
  /// catalog.
  [[nodiscard]] std::uint32_t synced_chunks() const;

  /// Ends the writer after sync(). The next chunk starts another one.
  void end();
  /// Drops the writer and what is not in the catalog yet. Returns the files that the writer left.
  [[nodiscard]] std::vector<FileCut> drop();

 private:
  /// Returns the record of a birth that goes on; nullopt if there is none.
  [[nodiscard]] Result<std::optional<format::Birth>> find_birth(const meta::Txn& txn,
                                                                VersionNumber birth) const;
  /// Start and end the writer, which must be flushed. The caller holds writer_mutex_ alone.
  void start_writer();
  void end_writer();
  void on_written(store::WrittenContainer written);

  const StoreParts parts_;
  std::atomic<std::int64_t> unwritten_{0};  // Raw bytes that the writer has in memory.

  std::mutex sync_mutex_;  // Taken before the mutexes below, which are in their order.
  // Held shared to use the writer, held alone to replace it.
  mutable std::shared_mutex writer_mutex_;
  mutable std::mutex mutex_;
  VersionNumber birth_{};
  format::Births births_;  // The present one, and those of unsynced_, as far as they have marks.
  std::uint32_t next_ordinal_ = 0;
  std::uint32_t synced_ = 0;  // Ordinals below it are in the catalog.
  std::uint64_t placed_raw_ = 0;
  std::vector<store::WrittenContainer> unsynced_;  // Written, and not yet in the catalog.

  VersionNumber writer_birth_{};
  std::atomic<std::uint64_t> stored_by_ended_writers_{0};  // Since begin().
  std::unique_ptr<store::ContainerWriter> writer_;         // Last: its thread calls on_written().
};

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
// Gives ids to new chunks and writes the chunks to a store: the writing half of every layout.
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

/// The objects needed to write chunks to a store.
/// Lifetime: all objects outlive the writing code.
struct StoreParts {
  const meta::Env& catalog;
  store::SegmentStore& store;
  const format::FrameCodec& codec;
  base::ThreadPool* compressors = nullptr;  ///< Null if the repository is read-only.
  StoredChunks& chunks;
  store::NumberSource& numbers;
  const LayoutMetrics* metrics = nullptr;  ///< Null: nothing is counted.
  bool file_per_container = false;         ///< As ContainerWriterOptions::file_per_container.
  /// Called for each new container before the container is known to the catalog or a reader; may be
  /// empty.
  std::function<void(ContainerNumber)> on_container{};
  /// Changes further records in each commit that locates new chunks; may be empty.
  std::function<Result<void>(meta::WriteTxn&)> at_sync{};
};

/// The new chunks of one version, in separate files. Thread-safe, but only one thread at a time
/// calls place().
class ChunkStream {
 public:
  explicit ChunkStream(const StoreParts& parts) : parts_(parts) {}
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  /// Starts or continues a birth: the next chunks get ids of the birth, after the ids in the store.
  /// A birth without chunks gets a mark. `version` of `series` stores the chunks.
  [[nodiscard]] Result<void> begin(VersionNumber birth, SeriesId series, VersionNumber version);
  /// Gives the next chunk an ordinal of at least `next`. Call skip_to() after begin(), before
  /// place().
  void skip_to(std::uint32_t next);
  /// The following functions do the work of the functions of Layout with the same names.
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
  /// Returns the number of chunks of the birth, from the first on, that are on disk and in the
  /// catalog.
  [[nodiscard]] std::uint32_t synced_chunks() const;

  /// Ends the writer after sync(). The next chunk starts a new writer.
  void end();
  /// Drops the writer and all chunks not yet in the catalog. Returns the files left by the writer.
  [[nodiscard]] std::vector<FileCut> drop();

 private:
  /// Returns the record of a continued birth; nullopt if the birth is new.
  [[nodiscard]] Result<std::optional<format::Birth>> find_birth(const meta::Txn& txn,
                                                                VersionNumber birth) const;
  /// Start and end the writer, which must be flushed. The caller holds writer_mutex_ exclusively.
  void start_writer();
  void end_writer();
  void on_written(store::WrittenContainer written);

  const StoreParts parts_;
  std::atomic<std::int64_t> unwritten_{0};  // Raw bytes in the writer's memory.

  std::mutex sync_mutex_;  // Taken before the mutexes below, which are in lock order.
  // Held shared to use the writer, held exclusively to replace the writer.
  mutable std::shared_mutex writer_mutex_;
  mutable std::mutex mutex_;
  VersionNumber birth_{};
  format::Births births_;  // The present birth and the births of unsynced_, if marked.
  std::uint32_t next_ordinal_ = 0;
  std::uint32_t synced_ = 0;  // Lower ordinals are in the catalog.
  std::uint64_t placed_raw_ = 0;
  std::vector<store::WrittenContainer> unsynced_;  // Written, and not yet in the catalog.

  VersionNumber writer_birth_{};
  std::atomic<std::uint64_t> stored_by_ended_writers_{0};  // Bytes since begin().
  std::unique_ptr<store::ContainerWriter> writer_;         // Last: its thread calls on_written().
};

}  // namespace varve::layout

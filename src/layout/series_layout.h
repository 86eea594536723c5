// SPDX-License-Identifier: Apache-2.0
// The layout seen by a series' versions: the series' own store, and the pool beside the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "layout/category_layout.h"
#include "layout/chunk_stream.h"
#include "layout/layout.h"
#include "layout/pool_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Forwards every call to the series' store or the pool, depending on the bit that marks the pool's
/// chunks and containers (base/ids.h). Thread-safe.
class SeriesLayout final : public Layout {
 public:
  /// Returns the repository's pool. Opens the pool at the first call.
  using Pool = std::function<Result<PoolStore*>()>;

  /// Lifetime: `own` and the pool outlive the object.
  SeriesLayout(CategoryLayout& own, Pool pool) : own_(own), pool_(std::move(pool)) {}

  [[nodiscard]] Result<void> begin_version(VersionNumber number) override;
  /// As CategoryLayout::skip_to().
  void skip_to(std::uint32_t next) { own_.skip_to(next); }
  [[nodiscard]] Result<ChunkId> place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw) override {
    return own_.place(fingerprint, raw);
  }
  /// Stores a chunk in the pool. The first call of a version starts the version's stream in the
  /// pool.
  [[nodiscard]] Result<ChunkId> place_shared(const Fingerprint& fingerprint,
                                             std::span<const std::byte> raw) override;
  [[nodiscard]] std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) override;
  [[nodiscard]] Result<void> flush() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] Result<void> on_seal(VersionNumber number, const base::IdRuns& live) override;
  /// Drops the new chunks of a version. The version's chunks in the pool stay until its pins end.
  [[nodiscard]] Result<void> on_delete(VersionNumber number) override;
  [[nodiscard]] PlacedBytes placed() const override;
  [[nodiscard]] std::uint64_t unwritten_bytes() const override;

  [[nodiscard]] const format::FrameCodec& codec() const override { return own_.codec(); }
  [[nodiscard]] Result<LocationRun> locate(ChunkId id) override;
  [[nodiscard]] Result<StoredRun> stored_run(const base::IdRun& run) override;
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override;
  [[nodiscard]] Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                                       std::span<std::byte> out) override;
  [[nodiscard]] Result<store::UnreadParts> read_around(ContainerNumber container,
                                                       std::uint32_t offset,
                                                       std::span<std::byte> out) override;
  [[nodiscard]] Result<std::span<const std::byte>> read_once(ContainerNumber container,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room) override;
  [[nodiscard]] bool answers_later() const override { return own_.answers_later(); }
  void read_many(const std::vector<DataRead>& reads, const DataCompletion& done) override;
  bool drop(ContainerNumber container) override;
  void note_damage(const format::ContainerHeader& header, std::uint32_t frame,
                   const Error& error) override;
  void will_read_header(ContainerNumber container) override;
  void will_read_all(ContainerNumber container) override;
  void will_read_chunks(ContainerNumber container, std::uint32_t index,
                        std::uint32_t count) override;
  void will_read_data(ContainerNumber container, std::uint32_t offset, std::size_t bytes) override;
  [[nodiscard]] Result<std::uint64_t> place_of(ContainerNumber container) override;

  /// As StoredChunks::digest(), for chunks that are all in the pool or all in the series' store.
  [[nodiscard]] Result<std::uint64_t> digest(const base::IdRuns& ids);

  /// Called after each sync with the birth of the version's stream in the pool, and with the number
  /// of the stream's chunks that are on disk and in the catalog.
  using OnSynced = std::function<void(VersionNumber birth, std::uint32_t chunks)>;
  void set_on_synced(OnSynced on_synced);

 private:
  [[nodiscard]] Result<ChunkSource*> source_of(ContainerNumber container);
  /// Returns the present stream, or null.
  [[nodiscard]] std::shared_ptr<ChunkStream> stream() const;
  [[nodiscard]] Result<std::shared_ptr<ChunkStream>> start_stream();
  [[nodiscard]] Result<void> sync_stream(ChunkStream& stream);

  CategoryLayout& own_;
  const Pool pool_;
  mutable std::mutex mutex_;
  VersionNumber version_{};
  std::shared_ptr<ChunkStream> stream_;
  OnSynced on_synced_;
};

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
// The lineage profile's layout of one series: new chunks are appended to the segments of the
// active set (MFDedup, FAST'21 §3).
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "io/file_system.h"
#include "layout/layout.h"
#include "meta/lmdb.h"
#include "store/container_writer.h"
#include "store/segment_files.h"
#include "varve/options.h"

namespace varve::layout {

struct CategoryLayoutOptions {
  SeriesId series{};
  std::string series_directory;  ///< REPO/series/ID; made if it is missing and not read-only.
  bool read_only = false;
  Codec codec = Codec::kNone;
  int zstd_level = 1;
};

/// Thread-safe. Lock order: sync_mutex_, writer_mutex_, mutex_.
class CategoryLayout final : public Layout {
 public:
  /// `compressors` may be null if read-only. Everything must outlive the layout.
  [[nodiscard]] static Result<std::unique_ptr<CategoryLayout>> open(
      const meta::Env& catalog, io::FileSystem& files, base::ThreadPool* compressors,
      const CategoryLayoutOptions& options);

  [[nodiscard]] Result<void> begin_version(VersionNumber number) override;
  [[nodiscard]] Result<ChunkId> place(const Fingerprint& fingerprint,
                                      std::span<const std::byte> raw) override;
  [[nodiscard]] std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) override;
  [[nodiscard]] Result<void> flush() override;
  [[nodiscard]] Result<void> sync() override;
  [[nodiscard]] Result<void> on_seal(VersionNumber number, const base::IdRuns& live) override;
  [[nodiscard]] Result<void> on_delete(VersionNumber number) override;
  [[nodiscard]] PlacedBytes placed() const override;

  [[nodiscard]] Result<LocationRun> locate(ChunkId id) override;
  [[nodiscard]] Result<std::shared_ptr<const format::ContainerHead>> head(
      std::uint32_t container) override;
  [[nodiscard]] Result<void> read_data(std::uint32_t container, std::uint32_t offset,
                                       std::span<std::byte> out) override;

  /// Where a container lies, for messages.
  [[nodiscard]] std::string describe(std::uint32_t container);

 private:
  CategoryLayout(const meta::Env& catalog, io::FileSystem& files, base::ThreadPool* compressors,
                 CategoryLayoutOptions options);
  /// With writer_mutex_ held alone.
  [[nodiscard]] Result<void> start_writer();
  void on_written(store::WrittenContainer written);
  [[nodiscard]] Result<store::ContainerRecord> record(std::uint32_t container);

  static constexpr std::size_t kHeadsCached = 64;

  const meta::Env& catalog_;
  io::FileSystem& files_;
  base::ThreadPool* compressors_;
  const CategoryLayoutOptions options_;
  store::SegmentReader reader_;

  std::mutex sync_mutex_;
  mutable std::mutex mutex_;
  VersionNumber number_{};
  std::uint32_t next_ordinal_ = 0;
  std::uint64_t placed_raw_ = 0;
  // Numbers of containers below were used since the start, maybe for what is gone by now.
  std::uint32_t containers_used_ = 0;
  // Written, but not yet in the catalog.
  std::map<std::uint64_t, LocationRun> new_locations_;
  std::unordered_map<std::uint32_t, store::ContainerRecord> new_containers_;

  std::mutex heads_mutex_;
  using Heads = std::list<std::pair<std::uint32_t, std::shared_ptr<const format::ContainerHead>>>;
  Heads heads_;  // Most recently used first.
  std::unordered_map<std::uint32_t, Heads::iterator> head_of_;

  // Held shared by who uses the writer, alone by who replaces it.
  mutable std::shared_mutex writer_mutex_;
  std::unique_ptr<store::ContainerWriter> writer_;  // Last: its thread calls on_written().
};

}  // namespace varve::layout

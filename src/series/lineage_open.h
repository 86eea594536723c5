// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/id_runs.h"
#include "catalog/series_catalog.h"
#include "series/manifests.h"
#include "series/series_parts.h"
#include "series/version_records.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve::index {
class FingerprintIndex;
class NeighbourIndex;
}  // namespace varve::index

namespace varve::ingest {
class DedupPolicy;
}  // namespace varve::ingest

namespace varve::layout {
struct DeletionPlan;
struct OpenHold;
}  // namespace varve::layout

namespace varve::version {
class CloneBase;
class OpenVersion;
}  // namespace varve::version

namespace varve::series {

class LineageIndex;
class PoolSession;
struct LineageStore;

/// The open version of a series, loaded into memory. The caller holds the series' mutex.
class LineageOpen {
 public:
  /// Lifetime: the arguments outlive the object.
  LineageOpen(const SeriesParts& parts, LineageStore& store, Manifests& manifests);
  LineageOpen(const LineageOpen&) = delete;
  LineageOpen& operator=(const LineageOpen&) = delete;
  ~LineageOpen();

  /// Returns the loaded version, or null.
  [[nodiscard]] const std::shared_ptr<version::OpenVersion>& version() const { return open_; }
  [[nodiscard]] LineageIndex& index() { return *index_; }

  /// Returns the number of names of an open version that is not loaded, as of the last checkpoint;
  /// nullopt if unknown. Reads the version's files once, unless another process may change them.
  [[nodiscard]] std::optional<std::uint64_t> stored_entries(const catalog::VersionRecord& record);
  /// Loads an open version, unless already loaded.
  [[nodiscard]] Result<void> resume(const catalog::VersionRecord& record);
  /// Returns the loaded version's decisions about the pool, with those of earlier processes.
  [[nodiscard]] RewriteCounts rewrite_counts() const;
  /// Sets the number of a new open version and commits its record.
  [[nodiscard]] Result<VersionInfo> put_new(catalog::VersionRecord& record);
  /// Errors: the errors with which opening a version would fail after another version was sealed.
  [[nodiscard]] Result<void> check_may_open(std::string_view name);
  /// Errors: kBusy if the open version must not be sealed for the next version.
  [[nodiscard]] Result<void> check_may_end(const catalog::VersionRecord& record);
  /// Removes the remains of the loaded version, after the commit of the seal or the drop. Logs
  /// errors.
  void end(const catalog::VersionRecord& record);
  /// Ends the use of the pool by a sealed or dropped version.
  void end_in_pool(VersionNumber number);
  /// Stops the loaded version and drops it from memory. The version stays open on disk.
  void release();
  /// Drops a failed copy.
  [[nodiscard]] Result<void> drop_unfinished(const catalog::VersionRecord& record);
  /// Makes the loaded version durable.
  /// Errors: the failure's error, with the number of entries and bytes that a crash would lose.
  [[nodiscard]] Result<void> sync();

  /// Returns the chunks to which the open version refers. With `dying`, prevents new references to
  /// the dying chunks from now on. If the references are unknown, returns no chunks and number 0;
  /// then all chunks to which the open version may refer stay.
  [[nodiscard]] layout::OpenHold hold(const base::IdRuns* dying);
  /// Returns the open version's record without the dead chunks; empty if the record does not
  /// change.
  [[nodiscard]] Result<OpenChunks> record_after(const meta::Txn& txn,
                                                const layout::DeletionPlan& plan);

 private:
  /// Returns the index of an open version: `neighbours`, followed by the pool's index if the
  /// placement has a pool.
  [[nodiscard]] Result<std::shared_ptr<index::FingerprintIndex>> with_pool(
      const catalog::VersionRecord& record, std::shared_ptr<index::NeighbourIndex> neighbours);
  [[nodiscard]] Result<void> drop_leftovers(const catalog::VersionRecord& record);
  [[nodiscard]] Result<base::IdRuns> stored_chunks(const catalog::VersionRecord& open,
                                                   Ino base_end) const;
  [[nodiscard]] Result<std::uint32_t> ordinals_end(const catalog::VersionRecord& record);
  [[nodiscard]] Result<std::shared_ptr<const version::CloneBase>> load_base(
      const catalog::VersionRecord& record);

  const SeriesParts& parts_;
  LineageStore& store_;
  Manifests& manifests_;
  const VersionRecords records_;
  const std::unique_ptr<LineageIndex> index_;
  std::shared_ptr<ingest::DedupPolicy> dedup_policy_;
  std::shared_ptr<PoolSession> session_;  // Null if the version's placement has no pool.
  std::shared_ptr<version::OpenVersion> open_;
  // Result of stored_entries(). No version is loaded since.
  std::optional<std::pair<VersionNumber, std::uint64_t>> stored_entries_;
};

}  // namespace varve::series

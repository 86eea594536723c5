// SPDX-License-Identifier: Apache-2.0
// A series with its own chunk store, laid out by categories (MFDedup, FAST'21 §3).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/series_catalog.h"
#include "series/manifests.h"
#include "series/readers.h"
#include "series/series.h"
#include "series/series_parts.h"
#include "series/version_records.h"

namespace varve::series {

/// Implements Series. Thread-safe. Lock order: mutex_, then load_mutex_ and the mutexes of the
/// parts, which are innermost.
class LineageSeries final : public Series {
 public:
  explicit LineageSeries(const SeriesParts& parts);
  ~LineageSeries() override;

  [[nodiscard]] Result<std::vector<VersionInfo>> versions() override;
  [[nodiscard]] Result<std::vector<VersionInfo>> open_versions(OpenSizes sizes) override;
  [[nodiscard]] Result<VersionInfo> find_version(std::string_view name) override;
  [[nodiscard]] Result<std::optional<VersionInfo>> version_to_end(std::string_view name,
                                                                  VersionNumber source) override;
  [[nodiscard]] Result<VersionInfo> open_version(std::string_view name,
                                                 const NewFile& root) override;
  [[nodiscard]] Result<std::shared_ptr<VersionWriter>> writer() override;
  [[nodiscard]] Result<std::shared_ptr<VersionReader>> reader(VersionNumber number) override;
  [[nodiscard]] Result<SealOutcome> seal(VersionNumber number, std::string_view new_name,
                                         SealMode mode, SealWriters writers) override;
  [[nodiscard]] Result<VersionInfo> clone_version(VersionNumber source,
                                                  std::string_view name) override;
  [[nodiscard]] Result<void> rename_version(VersionNumber number,
                                            std::string_view new_name) override;
  [[nodiscard]] Result<void> abandon_version(VersionNumber number, bool force) override;
  [[nodiscard]] Result<DeletionForecast> forecast_deletion(
      const std::vector<VersionNumber>& numbers, const DeletionOptions& options) override;
  [[nodiscard]] Result<DeletionForecast> delete_versions(const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options) override;
  [[nodiscard]] Result<void> check_deletion(VersionNumber number) override;
  [[nodiscard]] Result<void> lock_version(VersionNumber number, Timestamp until) override;
  [[nodiscard]] Result<std::vector<VersionUsage>> version_usage(
      std::optional<VersionNumber> only) override;
  [[nodiscard]] Result<PoolUsage> pool_usage(VersionNumber number) override;
  [[nodiscard]] Result<std::vector<VersionLock>> version_locks() override;
  [[nodiscard]] Result<std::vector<CategoryInfo>> categories() override;
  [[nodiscard]] Result<ArrangingDebt> arranging_debt() override;
  [[nodiscard]] Result<bool> arrange(const ArrangeOptions& options, Pace pace,
                                     ArrangeProgress& done) override;
  [[nodiscard]] Result<bool> protect(const ArrangeOptions& options, ArrangeProgress& done) override;
  [[nodiscard]] Result<version::StagedState> read_staged_state(VersionNumber number) override;
  [[nodiscard]] Result<void> verify_index(VersionNumber newest) override;
  [[nodiscard]] Result<std::uint64_t> lost_chunks_stamp() override;
  void hide(const base::IdRuns& lost) override;
  [[nodiscard]] Result<void> add_stats(const meta::Txn& txn, RepositoryStats& stats) override;
  [[nodiscard]] Result<void> remove() override;
  [[nodiscard]] Result<void> complete_manifests() override { return manifests_.complete(); }
  void write_labels() override { manifests_.labels().rewrite(); }
  [[nodiscard]] Result<void> sync() override;
  void stop() override;
  void release() override;

 private:
  /// The parts that need the stored chunks: lineage_loaded.h.
  struct Loaded;

  /// Returns the parts. The first call opens the stored chunks; after a failure, the next call
  /// tries again.
  [[nodiscard]] Result<Loaded*> load();
  /// Returns the parts if load() succeeded before, or null.
  [[nodiscard]] Loaded* loaded();
  /// Sets values missing in an open version's record. Another process may be writing the version.
  /// Unreadable sizes stay 0.
  [[nodiscard]] Result<void> measure_open(catalog::VersionRecord& record);
  /// Seals the present open version, to allow the next version. The caller holds mutex_.
  /// Errors: kBusy if the open version must not be sealed.
  [[nodiscard]] Result<void> end_present_version(Loaded& parts);

  const SeriesParts parts_;
  const VersionRecords records_;
  Manifests manifests_;
  Readers readers_;
  std::mutex mutex_;  // Serialises opening, sealing, abandoning and deleting versions.
  std::mutex load_mutex_;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace varve::series

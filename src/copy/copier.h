// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "copy/target.h"
#include "copy/version_sender.h"
#include "varve/copy.h"

namespace varve::copy {

/// A run of `varve copy`. Not thread-safe.
class Copier {
 public:
  /// `target` may be null for a dry run. Lifetime: all arguments outlive the object.
  Copier(Repository& source, Target* target, const CopyOptions& options,
         const CopyObserver& observer)
      : source_(source), target_(target), options_(options), observer_(observer) {}

  /// Does copy_versions().
  [[nodiscard]] Result<CopyReport> run();

 private:
  /// A series of the target and the versions of the series.
  struct Known {
    TargetSeries series;
    std::vector<TargetVersion> versions;
  };
  /// A series to copy.
  struct Job {
    SeriesInfo source;
    std::vector<VersionInfo> originals;  // Sealed, ascending.
    std::optional<SeriesId> target;      // None if a dry run finds no series.
    std::vector<TargetVersion> copies;   // Sealed, ascending.
    Known* renames = nullptr;            // The target, if the name differs from the source's.
    bool renames_last = false;           // An interrupted copy is open: rename after the copy.
  };
  using Locks = std::map<VersionNumber, Timestamp>;
  [[nodiscard]] Result<std::vector<SeriesInfo>> chosen_series();
  [[nodiscard]] Result<void> read_target();
  [[nodiscard]] Result<void> copy_series(const SeriesInfo& series);
  [[nodiscard]] Result<void> find_target(Job& job);
  /// Gives the target's series the present name of the source's series.
  [[nodiscard]] Result<void> rename_target(Job& job);
  [[nodiscard]] Result<void> check_copies(const Job& job) const;
  /// Refuses to prune if the source has no version as new as the newest copy.
  [[nodiscard]] Result<void> check_newest(const Job& job, const TargetVersion& newest) const;
  [[nodiscard]] Result<void> rename_copies(Job& job);
  [[nodiscard]] Result<void> copy_missing(Job& job);
  /// Returns false if the original was skipped.
  [[nodiscard]] Result<bool> copy_one(Job& job, const VersionInfo& original);
  [[nodiscard]] Result<TargetVersion> seal_one(const Job& job, const VersionInfo& original,
                                               const VersionSender& sender);
  [[nodiscard]] Result<void> lock_copies(const Job& job);
  /// Warns of copies whose locks end earlier than `wanted`.
  [[nodiscard]] Result<void> check_locks(const Job& job, const Locks& wanted) const;
  [[nodiscard]] Result<void> copy_beside(const Job& job);
  [[nodiscard]] Result<void> prune_copies(Job& job);
  [[nodiscard]] Result<void> compare_copies(const Job& job);
  [[nodiscard]] bool advance(std::uint64_t bytes);
  void tell(const CopyEvent& event) const;

  Repository& source_;
  Target* const target_;
  const CopyOptions& options_;
  const CopyObserver& observer_;
  std::vector<Known> known_;
  CopyReport report_;
  TransferProgress progress_;
};

}  // namespace varve::copy

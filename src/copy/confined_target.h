// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "copy/own_copies.h"
#include "copy/target.h"
#include "varve/copy.h"
#include "varve/repository.h"

namespace varve::copy {

/// Confines a possibly hostile source to the copies of the source. The source sees, renames, locks
/// and adds to series with copies of the source only; all remaining series are hidden from the
/// source. Passes all permitted calls to another target. Not thread-safe.
///
/// Errors of each function: the errors of the other target; kNotFound for a series or version that
/// does not belong to the source; kNotPermitted for an act excluded by the rights.
class ConfinedTarget final : public Target {
 public:
  /// Errors: the errors of OwnCopies::read().
  /// Lifetime: the repository changed by `target` and the clock outlive the object.
  [[nodiscard]] static Result<std::unique_ptr<ConfinedTarget>> confine(
      std::unique_ptr<Target> target, Repository& repository, const SourceRights& rights,
      const base::Clock& clock);

  [[nodiscard]] Result<std::string> repository_id() override { return target_->repository_id(); }
  [[nodiscard]] Result<std::vector<TargetSeries>> series() override { return copies_.series(); }
  [[nodiscard]] Result<std::vector<TargetVersion>> versions(SeriesId series) override;
  [[nodiscard]] Result<SeriesId> create_series(const std::string& name,
                                               const SeriesSettings& settings) override;
  [[nodiscard]] Result<void> rename_series(SeriesId series, const std::string& name) override;
  [[nodiscard]] Result<void> rename_version(SeriesId series, VersionNumber number,
                                            const std::string& name) override;
  /// Cuts a lock beyond SourceRights::lock_seconds_max.
  [[nodiscard]] Result<void> lock_version(SeriesId series, VersionNumber number,
                                          const Timestamp& until) override;
  /// Without SourceRights::may_prune, deletes only copies sealed by the connection.
  [[nodiscard]] Result<std::vector<std::string>> delete_versions(
      SeriesId series, const std::vector<VersionNumber>& numbers) override;
  [[nodiscard]] Result<void> set_beside(SeriesId series,
                                        const std::vector<BesideFile>& files) override;
  [[nodiscard]] Result<std::uint64_t> begin(const CopyBegin& copy) override;
  [[nodiscard]] Result<void> offer(ChangeBatch batch) override {
    return target_->offer(std::move(batch));
  }
  [[nodiscard]] Result<std::vector<bool>> wanted() override { return target_->wanted(); }
  [[nodiscard]] Result<void> fill(std::vector<std::string> chunks) override {
    return target_->fill(std::move(chunks));
  }
  [[nodiscard]] Result<void> settle() override { return target_->settle(); }
  [[nodiscard]] Result<std::vector<Difference>> check(SeriesId series,
                                                      std::optional<VersionNumber> sealed,
                                                      bool first,
                                                      const ChangeBatch& batch) override;
  [[nodiscard]] Result<TargetVersion> seal(const CopySeal& copy) override;
  [[nodiscard]] Result<void> drop() override { return target_->drop(); }
  [[nodiscard]] Result<void> finish() override { return target_->finish(); }

 private:
  ConfinedTarget(std::unique_ptr<Target> target, Repository& repository, SourceRights rights,
                 const base::Clock& clock, OwnCopies copies)
      : target_(std::move(target)),
        repository_(repository),
        rights_(std::move(rights)),
        clock_(clock),
        copies_(std::move(copies)) {}

  [[nodiscard]] Result<OwnSeries*> own_series(SeriesId series);
  /// Returns a sealed copy of the source.
  [[nodiscard]] Result<TargetVersion*> own_copy(SeriesId series, VersionNumber number);
  /// Checks that a version may come from the source, and belongs at the end of its series.
  [[nodiscard]] Result<void> check_origin(const VersionOrigin& origin);
  [[nodiscard]] static Result<void> check_place(const OwnSeries& own, const VersionOrigin& origin);

  const std::unique_ptr<Target> target_;
  Repository& repository_;
  const SourceRights rights_;
  const base::Clock& clock_;
  OwnCopies copies_;
  SeriesId receiving_{};                                 // Series of the last begin().
  std::set<std::pair<SeriesId, VersionNumber>> sealed_;  // Copies sealed by the connection.
};

}  // namespace varve::copy

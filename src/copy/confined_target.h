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

/// Confines a source that may be hostile to the copies that came from it. The source sees, renames,
/// locks and adds to series with copies of its own only; a series of others does not exist for it.
/// Passes all permitted calls to another target. Not thread-safe.
///
/// Errors, of each function: as the other target; kNotFound for a series or version that is not the
/// source's; kNotPermitted for an act that the rights exclude.
class ConfinedTarget final : public Target {
 public:
  /// Errors: those of OwnCopies::read().
  /// Lifetime: the repository, which `target` changes, and the clock outlive the object.
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
  /// Without SourceRights::may_prune, deletes only copies that this connection sealed.
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
  /// Checks that the version may come from this source, and belongs at the end of its series.
  [[nodiscard]] Result<void> check_origin(const VersionOrigin& origin);
  [[nodiscard]] static Result<void> check_place(const OwnSeries& own, const VersionOrigin& origin);

  const std::unique_ptr<Target> target_;
  Repository& repository_;
  const SourceRights rights_;
  const base::Clock& clock_;
  OwnCopies copies_;
  SeriesId receiving_{};                                 // Series of the last begin().
  std::set<std::pair<SeriesId, VersionNumber>> sealed_;  // By this connection.
};

}  // namespace varve::copy

// SPDX-License-Identifier: Apache-2.0
// Judges whether a repository needs attention: `varve status`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/refused_store.h"
#include "varve/remote_folder.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::cli {

/// The states of monitoring plug-ins. The exit code of `varve status` is the number.
enum class Health : std::uint8_t { kOk = 0, kWarning = 1, kCritical = 2 };

/// Returns "OK", "WARNING" or "CRITICAL".
[[nodiscard]] const char* name_of(Health health);

/// The state of a series for `varve status`.
struct SeriesStatus {
  std::string name;
  std::uint64_t versions = 0;         ///< Sealed versions.
  std::optional<VersionInfo> newest;  ///< The newest sealed version.
  std::vector<VersionInfo> open;
  ArrangingDebt debt;
  std::uint64_t unreplicated = 0;          ///< Sealed versions absent from the object store.
  std::uint64_t versions_with_losses = 0;  ///< Sealed versions with lost files.
  std::string lost_version{};              ///< The newest version with losses.
  LostFiles lost{};                        ///< Lost files of `lost_version`.
  std::optional<RefusedStore> refused{};   ///< Result of Repository::refused_store().
};

/// The state of a repository for `varve status`.
struct RepositoryStatus {
  std::vector<SeriesStatus> series;
  std::vector<EarlierCheck> checks;  ///< Result of Repository::earlier_checks().
  bool has_older_catalog = false;    ///< See Repository::has_older_catalog().
  SpaceInfo space;
  std::optional<std::uint64_t> sequence{};  ///< See Repository::sequence().
  Timestamp now;
  std::optional<ReplicationInfo> replication{};  ///< nullopt without an object store.
  std::optional<StoreUsage> store_usage{};       ///< As `replication`.
  UnreplicatedChanges changes{};                 ///< Changes absent from the object store.
  StagedData staged{};                           ///< Result of RemoteFolder::staged_data().
  std::optional<StoreLease> lease{};             ///< nullopt if no writer is known.
};

/// The limits set by the user.
struct StatusLimits {
  std::optional<std::uint64_t> age_s;        ///< Largest age of a series' newest version, seconds.
  std::optional<std::uint64_t> check_age_s;  ///< Largest age of a check of all data, seconds.
  std::uint64_t free_bytes = 0;              ///< Least free space.
};

/// A reason for attention.
struct Concern {
  Health health = Health::kOk;
  std::string text;  ///< One line, with advice.
};

/// Returns the times and results of checks in words.
[[nodiscard]] std::string checks_text(const std::vector<EarlierCheck>& checks,
                                      const Timestamp& now);

/// Returns the reasons for attention, the gravest reason first; none if all is well.
[[nodiscard]] std::vector<Concern> find_concerns(const RepositoryStatus& status,
                                                 const StatusLimits& limits);

/// Sets the members of `status` about lost files. SeriesStatus::newest must be set.
/// Errors: the common errors.
[[nodiscard]] Result<void> look_at_losses(Repository& repository, SeriesId series,
                                          SeriesStatus& status);

/// Returns the word for the reason in JSON and metrics: "empty" or "shrunk".
[[nodiscard]] const char* name_of(RefusalReason reason);

/// Returns the seconds from `time` to `now`; 0 if `time` is in the future.
[[nodiscard]] std::uint64_t seconds_since(const Timestamp& time, const Timestamp& now);
/// Returns the age in the largest unit with a count of at least two, rounded down, such as "5 h".
[[nodiscard]] std::string age_text(std::uint64_t seconds);
/// Returns the most thorough check of all data that ended last, or nullptr without a check.
[[nodiscard]] const EarlierCheck* newest_data_check(const std::vector<EarlierCheck>& checks);

}  // namespace varve::cli

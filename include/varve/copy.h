// SPDX-License-Identifier: Apache-2.0
// Copies sealed versions between repositories: `varve copy`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "varve/arrange.h"
#include "varve/options.h"
#include "varve/pool_index.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

namespace copy {
class Target;
}  // namespace copy

/// The kinds of targets accepted by a source.
enum class TargetKind : std::uint8_t {
  kAny = 0,                ///< Plain or encrypted; a new target is plain.
  kPlain = 1,              ///< Plain, created if needed.
  kEncrypted = 2,          ///< Encrypted, created if needed.
  kExistingEncrypted = 3,  ///< Encrypted, and created before.
};

/// The source's choices for a new target.
struct TargetSetup {
  RepositoryParameters parameters;
  SeriesSettings new_series;
  ArrangeSettings arrange;
  PoolIndexChoice pool_index;
  TargetKind kind = TargetKind::kAny;
};

/// Returns the choices of a repository.
/// Errors: those of reading its settings.
[[nodiscard]] Result<TargetSetup> target_setup(Repository& source);
/// Creates a repository with the choices in `setup`. `options` decides about encryption.
/// Errors: those of Repository::create() and of the settings.
[[nodiscard]] Result<void> create_target(const std::string& path, const TargetSetup& setup,
                                         const CreateOptions& options = {});
/// Creates a repository in an object store, with a folder on the local machine.
/// Errors: those of create_in_store() and of the settings.
[[nodiscard]] Result<void> create_target(const StorePlace& place, const std::string& path,
                                         const TargetSetup& setup, const CreateOptions& options);

struct CopyOptions {
  std::vector<std::string> series{};  ///< Names of the series to copy; empty for all.
  /// Deletes versions of the target whose originals the source deleted.
  bool prune = false;
  bool dry_run = false;  ///< Changes nothing.
  /// Copies a version with damaged files without the damaged files. Otherwise skips such a version.
  bool incomplete = false;
  /// Reads all versions of the target, not only new versions, and compares them with the source.
  bool check_all = false;
};

enum class CopyAction : std::uint8_t { kCopied, kRenamed, kDeleted, kChecked };

/// A finished step of a copy; in a dry run, a planned step.
struct CopyEvent {
  CopyAction action = CopyAction::kCopied;
  std::string series{};    ///< Name at the source.
  std::string version{};   ///< Name at the target, before any rename.
  std::string new_name{};  ///< Only kRenamed.
  std::uint64_t changes = 0;
  std::uint64_t data_bytes = 0;  ///< Bytes of the data named by the changes.
  std::uint64_t sent_bytes = 0;  ///< Bytes of `data_bytes` missing at the target.
  bool whole = true;             ///< False if damaged files were left out.
};

struct CopyReport {
  std::uint64_t copied = 0;   ///< Versions.
  std::uint64_t present = 0;  ///< Versions already present at the target.
  std::uint64_t renamed = 0;
  std::uint64_t deleted = 0;
  /// Versions of the target that the source no longer has.
  std::uint64_t kept = 0;
  /// Versions of the source, missing at the target, older than a version of the target. Not copied:
  /// the target deleted the version, or an earlier copy skipped it.
  std::uint64_t passed_over = 0;
  std::uint64_t changes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t sent_bytes = 0;
  /// Versions and series not copied, or not copied as a whole, each with the reason.
  std::vector<std::string> problems;
};

struct CopyObserver {
  /// Called after each piece of data; may be empty. Stops the copy by returning false.
  std::function<bool(const TransferProgress&)> progress;
  /// Called after each step; may be empty.
  std::function<void(const CopyEvent&)> done;
};

/// Returns a target for a repository of the calling process, opened for writing; for a dry run,
/// read-only. Lifetime: the repository outlives the target.
[[nodiscard]] std::shared_ptr<copy::Target> copy_target(Repository& repository);

/// The result of connect_target().
struct ConnectedTarget {
  std::shared_ptr<copy::Target> target;  ///< Null if a dry run finds no repository.
};
/// Connects to a process that runs serve_copy() and opens or creates the target.
/// Errors: those of opening the target there; kUnavailable or kUnsupported if the peer does not run
/// serve_copy().
/// Lifetime: the descriptors stay open until the target is destroyed.
[[nodiscard]] Result<ConnectedTarget> connect_target(int in, int out, const TargetSetup& setup,
                                                     bool dry_run);

/// The rights of the source served by serve_copy().
struct SourceRights {
  static constexpr std::uint64_t kLockSecondsDefault = std::uint64_t{5} * 366 * 86400;
  static constexpr std::uint64_t kSeriesDefault = 10'000;

  /// Repository::id() of the source. Empty: the target takes copies from one repository only, the
  /// source of the first copy.
  std::string origin{};
  bool may_prune = false;  ///< The source may delete its unlocked copies.
  /// Longest lock that the source may set, from the present time. A longer lock is shortened.
  std::uint64_t lock_seconds_max = kLockSecondsDefault;
  /// Maximum number of series that are the source's or have no versions. The source creates no
  /// series beyond the limit.
  std::uint64_t series_max = kSeriesDefault;
};

/// Opens the target of serve_copy(). Returns null in a dry run without a repository.
using OpenTarget = std::function<Result<Repository*>(const TargetSetup& setup, bool dry_run)>;
/// Receives copies over a stream, until the stream ends. Trusts no received data: the source sees
/// and changes only series with its own copies, within `rights`. Writes nothing to `out` but
/// answers.
/// Errors: kCorrupt if the source breaks the protocol; kUnavailable if the stream ends in the
/// middle.
[[nodiscard]] Result<void> serve_copy(const OpenTarget& open, const SourceRights& rights, int in,
                                      int out);

/// Copies the sealed versions missing at the target, oldest first. Reads the source, which another
/// process may be using, and changes nothing in the source. A version appears in the target once
/// all its data is there and was read back. The copy keeps the name, the times, and the mark of an
/// incomplete version; the copy's lock is at least as long. The next call continues an interrupted
/// copy. `target` may be null for a dry run: the target has no repository yet.
/// Errors: kInvalid if the target is the source, or holds copies of another repository; kNotFound
/// if the source lacks a requested series; kInterrupted if `progress` returned false; kNoSpace;
/// kUnavailable if the stream's peer is gone; kIo or kCorrupt if the target fails.
[[nodiscard]] Result<CopyReport> copy_versions(Repository& source, copy::Target* target,
                                               const CopyOptions& options,
                                               const CopyObserver& observer);

}  // namespace varve

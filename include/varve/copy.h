// SPDX-License-Identifier: Apache-2.0
// Copies the sealed versions of one repository to another one: `varve copy`.
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

/// The kinds of targets that a source asks for.
enum class TargetKind : std::uint8_t {
  kAny = 0,                ///< Plain or encrypted; a new one is plain.
  kPlain = 1,              ///< Plain, created if needed.
  kEncrypted = 2,          ///< Encrypted, created if needed.
  kExistingEncrypted = 3,  ///< Encrypted, and created before.
};

/// The choices that a new target takes over from the source.
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
/// Creates a repository with these choices. `options` decides whether it is encrypted.
/// Errors: those of Repository::create() and of the settings.
[[nodiscard]] Result<void> create_target(const std::string& path, const TargetSetup& setup,
                                         const CreateOptions& options = {});
/// Creates a repository in an object store, with a folder on this machine.
/// Errors: those of create_in_store() and of the settings.
[[nodiscard]] Result<void> create_target(const StorePlace& place, const std::string& path,
                                         const TargetSetup& setup, const CreateOptions& options);

struct CopyOptions {
  std::vector<std::string> series{};  ///< Names of the series to copy; empty for all.
  /// Deletes versions of the target that were deleted at the source.
  bool prune = false;
  bool dry_run = false;  ///< Changes nothing.
  /// Copies a version with damaged files without these files. Otherwise such a version is skipped.
  bool incomplete = false;
  /// Reads all versions of the target and compares them with the source, not only the new ones.
  bool check_all = false;
};

enum class CopyAction : std::uint8_t { kCopied, kRenamed, kDeleted, kChecked };

/// A finished step of a copy, or one that a dry run would take.
struct CopyEvent {
  CopyAction action = CopyAction::kCopied;
  std::string series{};    ///< Name at the source.
  std::string version{};   ///< Name at the target, before it is renamed.
  std::string new_name{};  ///< Only kRenamed.
  std::uint64_t changes = 0;
  std::uint64_t data_bytes = 0;  ///< Bytes of the data that the changes name.
  std::uint64_t sent_bytes = 0;  ///< Bytes of them that the target did not have.
  bool whole = true;             ///< False if damaged files were left out.
};

struct CopyReport {
  std::uint64_t copied = 0;   ///< Versions.
  std::uint64_t present = 0;  ///< Versions that the target had already.
  std::uint64_t renamed = 0;
  std::uint64_t deleted = 0;
  /// Versions of the target that the source does not have any more.
  std::uint64_t kept = 0;
  /// Versions of the source that the target lacks although it has a later one. They are not copied:
  /// the target deleted them, or an earlier copy skipped them.
  std::uint64_t passed_over = 0;
  std::uint64_t changes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t sent_bytes = 0;
  /// Versions and series that were not copied, or not as a whole, each with the reason.
  std::vector<std::string> problems;
};

struct CopyObserver {
  /// Called after each piece of data; may be empty. Stops the copy by returning false.
  std::function<bool(const TransferProgress&)> progress;
  /// Called after each step; may be empty.
  std::function<void(const CopyEvent&)> done;
};

/// Returns a target that is a repository of this process, opened for writing; for a dry run,
/// read-only. Lifetime: the repository outlives the target.
[[nodiscard]] std::shared_ptr<copy::Target> copy_target(Repository& repository);

/// The result of connect_target().
struct ConnectedTarget {
  std::shared_ptr<copy::Target> target;  ///< Null if a dry run finds no repository.
};
/// Connects to a process that runs serve_copy(), which opens or creates the target.
/// Errors: those of opening the target there; kUnavailable or kUnsupported if the other end is no
/// such process.
/// Lifetime: the descriptors stay open until the target is destroyed.
[[nodiscard]] Result<ConnectedTarget> connect_target(int in, int out, const TargetSetup& setup,
                                                     bool dry_run);

/// The rights of the source that serve_copy() serves.
struct SourceRights {
  static constexpr std::uint64_t kLockSecondsDefault = std::uint64_t{5} * 366 * 86400;

  /// Repository::id() of the source. Empty: the target takes copies of one repository only, that of
  /// the first copy.
  std::string origin{};
  bool may_prune = false;  ///< The source may delete its copies that have no lock.
  /// Longest lock that the source may set, from now on. A longer lock is cut.
  std::uint64_t lock_seconds_max = kLockSecondsDefault;
};

/// Opens the target of serve_copy(). Returns null in a dry run without a repository.
using OpenTarget = std::function<Result<Repository*>(const TargetSetup& setup, bool dry_run)>;
/// Receives copies over a stream, until it ends. Trusts nothing that it receives: the source sees
/// and changes only series with copies from it, within `rights`. Writes nothing to `out` but
/// answers.
/// Errors: kCorrupt if the other end breaks the protocol; kUnavailable if it is gone in the middle.
[[nodiscard]] Result<void> serve_copy(const OpenTarget& open, const SourceRights& rights, int in,
                                      int out);

/// Copies the sealed versions that the target lacks, oldest first. Reads the source, which another
/// process may be using, and changes nothing in it. A version appears in the target once all of it
/// is there and was read back. It keeps its name, its times, and the mark of an incomplete one; its
/// lock is at least as long. The next call continues an interrupted copy. `target` may be null for
/// a dry run: the target has no repository yet.
/// Errors: kInvalid if the target is the source, or holds copies of another repository; kNotFound
/// if the source has no series of a name; kInterrupted if `progress` returned false; kNoSpace;
/// kUnavailable if the other end of a stream is gone; kIo or kCorrupt if the target fails.
[[nodiscard]] Result<CopyReport> copy_versions(Repository& source, copy::Target* target,
                                               const CopyOptions& options,
                                               const CopyObserver& observer);

}  // namespace varve

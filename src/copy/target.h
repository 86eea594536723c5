// SPDX-License-Identifier: Apache-2.0
// The repository that receives copies: in this process, or behind a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "copy/change.h"
#include "varve/backup.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::copy {

/// A series of the target.
struct TargetSeries {
  SeriesId id{};
  std::string name;
  bool operator==(const TargetSeries&) const = default;
};

/// A version of the target.
struct TargetVersion {
  VersionNumber number{};
  std::string name;
  bool is_sealed = false;
  std::uint64_t entries = 0;
  Timestamp locked_until;
  std::optional<VersionOrigin> origin;  ///< Unknown for an open version.
  bool operator==(const TargetVersion&) const = default;
};

/// The start of a copy.
struct CopyBegin {
  SeriesId series{};
  VersionNumber base{};  ///< The version to start as a clone of; 0: an empty version.
  VersionOrigin origin;
  bool continues = true;                  ///< Continues an interrupted copy. False drops it.
  KnownChunks known = KnownChunks::kAll;  ///< Chunks Target::wanted() may refuse. Not sent.
  bool operator==(const CopyBegin&) const = default;
};

/// The end of a copy.
struct CopySeal {
  std::string name;
  std::optional<Timestamp> claimed_at{};
  bool whole = true;
  std::uint64_t problems = 0;  ///< VersionInfo::problems of the original.
  bool operator==(const CopySeal&) const = default;
};

/// A file beside the versions of a series; listed after its directory.
struct BesideFile {
  std::string folder;  ///< "" is the series.
  std::string name;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  Timestamp mtime;
  std::string content;  ///< The bytes of a file, the target of a symlink.
  bool operator==(const BesideFile&) const = default;
};

/// Names a change of a batch that is missing from the checked version.
struct Difference {
  std::uint32_t change = 0;
  std::string reason;
  bool operator==(const Difference&) const = default;
};

/// Receives copies. Not thread-safe. Common errors, of each function: the repository's errors;
/// kUnavailable if the peer of a stream is gone; kCorrupt if the peer breaks the protocol.
class Target {
 public:
  virtual ~Target() = default;

  [[nodiscard]] virtual Result<std::string> repository_id() = 0;
  [[nodiscard]] virtual Result<std::vector<TargetSeries>> series() = 0;
  /// Returns the versions of a series in ascending number, an open one included.
  [[nodiscard]] virtual Result<std::vector<TargetVersion>> versions(SeriesId series) = 0;

  [[nodiscard]] virtual Result<SeriesId> create_series(const std::string& name,
                                                       const SeriesSettings& settings) = 0;
  [[nodiscard]] virtual Result<void> rename_series(SeriesId series, const std::string& name) = 0;
  [[nodiscard]] virtual Result<void> rename_version(SeriesId series, VersionNumber number,
                                                    const std::string& name) = 0;
  [[nodiscard]] virtual Result<void> lock_version(SeriesId series, VersionNumber number,
                                                  const Timestamp& until) = 0;
  /// Deletes sealed versions. Returns a reason for each version that cannot be deleted now.
  [[nodiscard]] virtual Result<std::vector<std::string>> delete_versions(
      SeriesId series, const std::vector<VersionNumber>& numbers) = 0;
  /// Replaces the files beside the versions of a series.
  [[nodiscard]] virtual Result<void> set_beside(SeriesId series,
                                                const std::vector<BesideFile>& files) = 0;

  /// Opens a version for a copy, or continues an interrupted copy. Returns the copy's number of
  /// durable changes.
  /// Errors: kBusy if the series has an open version that is no copy.
  [[nodiscard]] virtual Result<std::uint64_t> begin(const CopyBegin& copy) = 0;
  /// Sends the next changes of the version opened by begin(). May return before the changes arrive.
  [[nodiscard]] virtual Result<void> offer(ChangeBatch batch) = 0;
  /// Returns, for the oldest unanswered batch, whether the target needs each chunk's bytes, in the
  /// order of the chunks.
  [[nodiscard]] virtual Result<std::vector<bool>> wanted() = 0;
  /// Sends the needed bytes of the batch answered by wanted(), in order; "" for an unreadable
  /// chunk. The target then makes the batch's changes.
  [[nodiscard]] virtual Result<void> fill(std::vector<std::string> chunks) = 0;
  /// Makes all changes so far durable.
  [[nodiscard]] virtual Result<void> settle() = 0;
  /// Compares the result of changes with a version: the open copy, or a sealed version. Reads all
  /// data. A batch continues in the directory where the previous batch ended; `first` begins at the
  /// root.
  [[nodiscard]] virtual Result<std::vector<Difference>> check(SeriesId series,
                                                              std::optional<VersionNumber> sealed,
                                                              bool first,
                                                              const ChangeBatch& batch) = 0;
  /// Seals the copy with the origin's time.
  [[nodiscard]] virtual Result<TargetVersion> seal(const CopySeal& copy) = 0;
  /// Drops the copy.
  [[nodiscard]] virtual Result<void> drop() = 0;

  /// Ends the work, and makes everything durable.
  [[nodiscard]] virtual Result<void> finish() = 0;
};

}  // namespace varve::copy

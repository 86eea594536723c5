// SPDX-License-Identifier: Apache-2.0
// Stores streams and archives as versions, and plans the store of a directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// A difference between a directory and the version from which a store would start.
enum class StoreChange : char {
  kAdded = '+',
  kChanged = 'M',   ///< Another type, size or modification time.
  kMetadata = 'm',  ///< Only another mode or owner.
  kRemoved = '-',   ///< A removed directory counts once.
};

/// The work of a planned store.
struct StorePlan {
  std::uint64_t entries = 0;          ///< Entries of the planned version, without the root.
  std::uint64_t unchanged = 0;        ///< Files that the store would not read.
  std::uint64_t unchanged_bytes = 0;  ///< Data of the unchanged files.
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;   ///< Bytes of the files that the store would read, with holes.
  std::uint64_t filled = 0;  ///< Names of files that are not empty.
  std::vector<std::string> problems;
  /// The message with which store_version() would refuse the directory (StoreRequest::guard); ""
  /// if not refused.
  std::string refusal{};
};

/// A stream to store as a version.
struct StreamRequest {
  std::string series;  ///< Created if needed.
  std::string version;
  /// The path of the version's only file, which gets the stream; "" if the stream is an archive,
  /// whose members become the version's entries.
  std::string file;
  /// Set if the caller seals the version with seal_stored(). Then no incomplete version stays: a
  /// failure drops the version, and after a crash the same call continues with an empty version.
  bool seals = false;
  /// Opens the version, as StoreRequest::open does. May be empty.
  std::function<Result<VersionInfo>(SeriesId series, VersionNumber source, const NewFile& root)>
      open{};
  /// Drops an incomplete version, in place of Repository::abandon_version(). May be empty.
  std::function<Result<void>(SeriesId series, VersionNumber number)> drop{};
  /// Called once the whole stream is stored. An error counts as an error of the stream. May be
  /// empty.
  std::function<Result<void>()> confirm{};
  /// Refuses a stream without a byte, and an archive without a member, after `confirm`. The refused
  /// store is noted for Repository::refused_store().
  bool refuses_empty = false;
};

}  // namespace varve

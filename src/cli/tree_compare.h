// SPDX-License-Identifier: Apache-2.0
// Compares two sealed trees, or two entries of sealed trees.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "varve/browse.h"
#include "varve/result.h"

namespace varve::cli {

enum class Difference { kNone, kMetadata, kContent };

/// An entry together with its version.
struct EntryAt {
  VersionReader& reader;
  SealedEntry entry;
};

/// How to decide whether two files have the same data. Files of different sizes differ. Like rsync,
/// all methods except kRead treat files of the same size and modification time as equal.
enum class DataCheck {
  kStored,  ///< Compares the stored chunks and reads no data. Equal bytes may seem to differ.
  kTimes,   ///< Reads both files if their times differ.
  kRead,    ///< Reads both files.
};

/// Returns the difference between two entries of the same type. Metadata are mode, owner, group,
/// modification time and extended attributes.
[[nodiscard]] Result<Difference> compare_entries(const EntryAt& before, const EntryAt& after,
                                                 DataCheck check);

/// Returns the entry of a path without slashes at the ends; "" is the root.
/// Errors: kNotFound, with a message not meant for users.
[[nodiscard]] Result<SealedEntry> find_entry(VersionReader& reader, std::string_view path);

/// A name that differs between two trees.
struct TreeChange {
  enum class Kind { kAdded, kRemoved, kContent, kMetadata };
  Kind kind = Kind::kAdded;
  std::string path;
  SealedEntry entry;  ///< The entry after the change; for kRemoved, the entry before it.
};

/// A comparison of two trees, or a part of a comparison.
struct TreeComparison {
  std::string path;  ///< Path of the two entries.
  DataCheck check = DataCheck::kTimes;
  bool added_only = false;  ///< True to report only names absent from `before`.
  /// The path where an earlier comparison stopped: the comparison continues after the path in tree
  /// order.
  std::optional<std::string> behind = std::nullopt;
  std::uint64_t names_max = std::numeric_limits<std::uint64_t>::max();  ///< Limit of visited names.
};

/// The end of a comparison.
struct ComparedTrees {
  std::uint64_t names = 0;             ///< Number of visited names.
  std::optional<std::string> stopped;  ///< The last path, unless the comparison is complete.
};

/// Compares two entries and the trees below the entries; a null stands for a missing entry. Walks
/// both trees in step, in tree order, and calls `sink` for each name that differs, until `sink`
/// returns false. An added or removed directory reports each name in the directory too. A name of
/// changed type counts as removed and added. Skips directories that one series stores as the same.
/// Memory grows only with the depth.
[[nodiscard]] Result<ComparedTrees> compare_trees(
    const EntryAt* before, const EntryAt* after, const TreeComparison& comparison,
    const std::function<bool(const TreeChange&)>& sink);

}  // namespace varve::cli

// SPDX-License-Identifier: Apache-2.0
// Compares two sealed trees, or two entries of them.
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

/// An entry together with the version that it is in.
struct EntryAt {
  VersionReader& reader;
  SealedEntry entry;
};

/// How to tell whether two files have the same data. Files of another size differ. Like rsync, all
/// but kRead take files of the same size and modification time for equal.
enum class DataCheck {
  kStored,  ///< Compares the stored chunks and reads no data. Equal bytes may seem to differ.
  kTimes,   ///< Reads both files if their times differ.
  kRead,    ///< Reads both files.
};

/// Returns the difference between two entries of the same type. Metadata are mode, owner, group,
/// modification time and extended attributes.
[[nodiscard]] Result<Difference> compare_entries(const EntryAt& before, const EntryAt& after,
                                                 DataCheck check);

/// Returns the entry of a path without slashes at its ends; "" is the root.
/// Errors: kNotFound, with a message that is not for users.
[[nodiscard]] Result<SealedEntry> find_entry(VersionReader& reader, std::string_view path);

/// A name that differs between two trees.
struct TreeChange {
  enum class Kind { kAdded, kRemoved, kContent, kMetadata };
  Kind kind = Kind::kAdded;
  std::string path;
  SealedEntry entry;  ///< The entry after the change; for kRemoved, the entry before it.
};

/// A comparison of two trees, or a part of one.
struct TreeComparison {
  std::string path;  ///< Path of the two entries.
  DataCheck check = DataCheck::kTimes;
  bool added_only = false;  ///< True to look only for names that `before` does not have.
  /// The path where an earlier comparison stopped: begins behind it in tree order.
  std::optional<std::string> behind = std::nullopt;
  std::uint64_t names_max = std::numeric_limits<std::uint64_t>::max();  ///< Names to look at.
};

/// The end of a comparison.
struct ComparedTrees {
  std::uint64_t names = 0;             ///< Number of names that it looked at.
  std::optional<std::string> stopped;  ///< The path where it stopped, unless it came to the end.
};

/// Compares two entries and the trees below them; a null stands for a missing entry. Walks both in
/// step, in tree order, and calls `sink` for each name that differs, until `sink` returns false. An
/// added or removed directory reports each name in it too. A name whose type changed counts as
/// removed and added. Skips directories that one series stores as the same. Memory grows only with
/// the depth.
[[nodiscard]] Result<ComparedTrees> compare_trees(
    const EntryAt* before, const EntryAt* after, const TreeComparison& comparison,
    const std::function<bool(const TreeChange&)>& sink);

}  // namespace varve::cli

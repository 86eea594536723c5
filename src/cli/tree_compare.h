// SPDX-License-Identifier: Apache-2.0
// Compares two sealed trees, or two entries of them.
#pragma once

#include <functional>
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

/// Returns the difference between two entries of the same type. Like rsync, takes files of the same
/// size and modification time for equal. Compares their bytes if only the times differ, or if
/// `read_data` is set. Metadata are mode, owner, group, modification time and extended attributes.
[[nodiscard]] Result<Difference> compare_entries(const EntryAt& before, const EntryAt& after,
                                                 bool read_data);

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

/// Compares two entries at `path` and the trees below them. Walks both in step, in tree order, and
/// calls `sink` for each name that differs. An added or removed directory reports each name in it
/// too. A name whose type changed counts as removed and added. Memory grows only with the depth.
[[nodiscard]] Result<void> compare_trees(const EntryAt& before, const EntryAt& after,
                                         const std::string& path, bool read_data,
                                         const std::function<void(const TreeChange&)>& sink);
/// Calls `sink` for each name of a tree that only one side has. `kind` is kAdded or kRemoved.
[[nodiscard]] Result<void> list_tree(const EntryAt& root, const std::string& path,
                                     TreeChange::Kind kind,
                                     const std::function<void(const TreeChange&)>& sink);

}  // namespace varve::cli

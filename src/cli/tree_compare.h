// SPDX-License-Identifier: Apache-2.0
// What differs between two sealed trees, or between two entries of them.
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

/// How much `after` differs from `before`, which is of the same type. Files of the same size and
/// modification time are taken for equal, as rsync does; if only the times differ, or
/// `read_data` asks for it, their bytes are compared. Metadata are mode, owner, group,
/// modification time and extended attributes.
[[nodiscard]] Result<Difference> compare_entries(const EntryAt& before, const EntryAt& after,
                                                 bool read_data);

/// The entry of a path without slashes at its ends; "" is the root. kNotFound without a message
/// for users.
[[nodiscard]] Result<SealedEntry> find_entry(VersionReader& reader, std::string_view path);

struct TreeChange {
  enum class Kind { kAdded, kRemoved, kContent, kMetadata };
  Kind kind = Kind::kAdded;
  std::string path;
  SealedEntry entry;  ///< As it is after; of kRemoved, as it was before.
};

/// Walks two trees in step, in tree order, and calls `sink` for each name that differs; of a
/// directory that was added or removed, for each name in it too. Memory does not grow with the
/// size of the trees, only with their depth. `path` is where the two entries are; they are
/// compared themselves, too. A name whose type changed was removed and added.
[[nodiscard]] Result<void> compare_trees(const EntryAt& before, const EntryAt& after,
                                         const std::string& path, bool read_data,
                                         const std::function<void(const TreeChange&)>& sink);
/// The same for a tree that only one side has: kAdded or kRemoved.
[[nodiscard]] Result<void> list_tree(const EntryAt& root, const std::string& path,
                                     TreeChange::Kind kind,
                                     const std::function<void(const TreeChange&)>& sink);

}  // namespace varve::cli

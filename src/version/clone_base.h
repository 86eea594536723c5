// SPDX-License-Identifier: Apache-2.0
// The sealed tree that an open version started as, seen with the open version's inode numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "catalog/dir_tree.h"
#include "catalog/link_table.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "version/open_inode.h"

namespace varve::version {

/// The base of an open version that started as a clone. Immutable and thread-safe.
///
/// The inode number of a file of the base is its rank plus one; a hard-linked file has the rank of
/// its first name. So no table translates between the two, and the root is 1 as in every open
/// version. The files below a directory have the numbers that follow the directory's, without a
/// gap.
class CloneBase {
 public:
  /// `record` describes the sealed version, and `links` its hard links.
  /// Lifetime: `objects` must outlive the base.
  CloneBase(catalog::ObjectReader& objects, catalog::VersionRecord record, catalog::LinkTable links)
      : objects_(objects),
        record_(std::move(record)),
        tree_(objects, record_.root),
        links_(std::move(links)) {}
  CloneBase(const CloneBase&) = delete;
  CloneBase& operator=(const CloneBase&) = delete;

  [[nodiscard]] const catalog::VersionRecord& record() const { return record_; }
  [[nodiscard]] const catalog::LinkTable& links() const { return links_; }
  /// Returns the first inode number after those of the base.
  [[nodiscard]] Ino end() const { return record_.entries + 2; }
  /// Returns whether a file of the base has the number.
  [[nodiscard]] bool has(Ino ino) const { return rank_known(ino) && ino_of(ino - 1) == ino; }
  [[nodiscard]] Ino ino_of(Rank rank) const { return links_.first_of(rank) + 1; }
  [[nodiscard]] static Rank rank_of(Ino ino) { return ino - 1; }

  /// Returns the file as it was sealed. A recipe that is an object of its own stays in the catalog.
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> load(Ino ino) const;
  /// Returns the same for an entry that the caller has found.
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> make(const catalog::TreeEntry& found) const;

  /// Returns the entry of a name that a directory of the base had; nullopt if there is none. `page`
  /// is the directory's top page.
  [[nodiscard]] Result<std::optional<catalog::TreeEntry>> find(Ino directory, format::NodeId page,
                                                               std::string_view name) const;
  /// Returns a cursor over the names that the directory had.
  [[nodiscard]] catalog::DirCursor names(Ino directory, format::NodeId page) const {
    return {objects_, page, rank_of(directory)};
  }
  /// Returns whether the directory had the name. Walks to the directory from the root.
  [[nodiscard]] Result<bool> had_name(Ino directory, std::string_view name) const;

  /// Loads the inode's recipe, if it is not in memory.
  [[nodiscard]] Result<void> load_recipe(OpenInode& inode) const;

 private:
  [[nodiscard]] bool rank_known(Ino ino) const { return ino != 0 && ino < end(); }

  catalog::ObjectReader& objects_;
  const catalog::VersionRecord record_;
  const catalog::DirTree tree_;
  const catalog::LinkTable links_;
};

}  // namespace varve::version

// SPDX-License-Identifier: Apache-2.0
// The sealed tree that an open version started as, with the open version's inode numbers.
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
/// The inode number of a file of the base is the file's rank plus one; a hard-linked file has the
/// rank of its first name. So no table translates between rank and inode number, and the root is 1
/// as in every open version. The numbers of the files below a directory follow the directory's
/// number without a gap.
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
  /// Returns the first inode number after the numbers of the base.
  [[nodiscard]] Ino end() const { return record_.entries + 2; }
  /// Returns whether a file of the base has the number.
  [[nodiscard]] bool has(Ino ino) const { return rank_known(ino) && ino_of(ino - 1) == ino; }
  [[nodiscard]] Ino ino_of(Rank rank) const { return links_.first_of(rank) + 1; }
  [[nodiscard]] static Rank rank_of(Ino ino) { return ino - 1; }

  /// Returns the file as sealed. A recipe stored as a separate object stays in the catalog.
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> load(Ino ino) const;
  /// Returns the file of an entry found by the caller, as load().
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> make(const catalog::TreeEntry& found) const;

  /// Returns the entry of a name in a directory of the base; nullopt if there is none. `page` is
  /// the directory's top page.
  [[nodiscard]] Result<std::optional<catalog::TreeEntry>> find(Ino directory, format::NodeId page,
                                                               std::string_view name) const;
  /// Returns a cursor over the names that the directory had in the base.
  [[nodiscard]] catalog::DirCursor names(Ino directory, format::NodeId page) const {
    return {objects_, page, rank_of(directory)};
  }
  /// Returns whether the directory had the name in the base. Walks to the directory from the root.
  [[nodiscard]] Result<bool> had_name(Ino directory, std::string_view name) const;

  /// Loads the inode's recipe, if not in memory.
  [[nodiscard]] Result<void> load_recipe(OpenInode& inode) const;

 private:
  [[nodiscard]] bool rank_known(Ino ino) const { return ino != 0 && ino < end(); }

  catalog::ObjectReader& objects_;
  const catalog::VersionRecord record_;
  const catalog::DirTree tree_;
  const catalog::LinkTable links_;
};

}  // namespace varve::version

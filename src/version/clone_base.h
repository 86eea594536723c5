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
#include "varve/result.h"
#include "varve/version_writer.h"
#include "version/open_inode.h"

namespace varve::version {

/// Thread-safe, immutable. The reader must outlive it.
///
/// A file of the base has its rank plus one as inode number, of a hard-linked file that of its
/// first name; so no table translates between them, and the root is 1 as in every open version.
/// The files below a directory have the numbers that follow its own, without a gap.
class CloneBase {
 public:
  /// `record` is a sealed version's, `links` its hard links.
  CloneBase(catalog::ObjectReader& objects, catalog::VersionRecord record, catalog::LinkTable links)
      : objects_(objects),
        record_(std::move(record)),
        tree_(objects, record_.root),
        links_(std::move(links)) {}
  CloneBase(const CloneBase&) = delete;
  CloneBase& operator=(const CloneBase&) = delete;

  [[nodiscard]] const catalog::VersionRecord& record() const { return record_; }
  [[nodiscard]] const catalog::LinkTable& links() const { return links_; }
  /// The first inode number that is not the base's.
  [[nodiscard]] Ino end() const { return record_.entries + 2; }
  /// Whether the number is that of a file of the base.
  [[nodiscard]] bool has(Ino ino) const { return rank_known(ino) && ino_of(ino - 1) == ino; }
  [[nodiscard]] Ino ino_of(Rank rank) const { return links_.first_of(rank) + 1; }
  [[nodiscard]] static Rank rank_of(Ino ino) { return ino - 1; }

  /// The file as it was sealed. Its recipe is left in the catalog if it has an object of its own.
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> load(Ino ino) const;
  [[nodiscard]] Result<std::unique_ptr<OpenInode>> make(const catalog::TreeEntry& found) const;

  /// A name that a directory of the base had. `page`: its top page.
  [[nodiscard]] Result<std::optional<catalog::TreeEntry>> find(Ino directory, format::NodeId page,
                                                               std::string_view name) const;
  [[nodiscard]] catalog::DirCursor names(Ino directory, format::NodeId page) const {
    return {objects_, page, rank_of(directory)};
  }
  /// Whether the directory had the name; the walk to it from the root is paid here.
  [[nodiscard]] Result<bool> had_name(Ino directory, std::string_view name) const;

  /// Brings the inode's recipe into memory, if it is not there.
  [[nodiscard]] Result<void> load_recipe(OpenInode& inode) const;

 private:
  [[nodiscard]] bool rank_known(Ino ino) const { return ino != 0 && ino < end(); }

  catalog::ObjectReader& objects_;
  const catalog::VersionRecord record_;
  const catalog::DirTree tree_;
  const catalog::LinkTable links_;
};

}  // namespace varve::version

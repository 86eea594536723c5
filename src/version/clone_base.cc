// SPDX-License-Identifier: Apache-2.0
#include "version/clone_base.h"

#include <sys/stat.h>

namespace varve::version {

Result<std::unique_ptr<OpenInode>> CloneBase::load(Ino ino) const {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank_of(ino)));
  return make(found);
}

Result<std::unique_ptr<OpenInode>> CloneBase::make(const catalog::TreeEntry& found) const {
  const format::DirEntry& entry = *found.entry;
  auto inode = std::make_unique<OpenInode>();
  inode->ino = ino_of(found.rank);
  inode->as_in_base = true;
  inode->mode = entry.mode;
  inode->uid = entry.uid;
  inode->gid = entry.gid;
  inode->rdev = entry.rdev;
  inode->mtime = inode->atime = entry.mtime;
  inode->ctime = record_.sealed_at;
  inode->xattrs = entry.xattrs;
  inode->symlink_target = entry.symlink_target;
  inode->content.clear_recipe();
  if (inode->is_directory()) {
    inode->directory.parent = found.parent + 1;
    inode->directory.base_page = entry.child;
    inode->directory.subdirectories = entry.subdirectories;
    VARVE_TRY_ASSIGN(inode->directory.children, catalog::count_names(objects_, entry.child));
    return inode;
  }
  inode->nlink = entry.nlink;
  if (!inode->is_regular()) return inode;
  inode->content.size = entry.size;
  inode->content.hole_bytes = entry.size - entry.data_bytes;
  if (entry.recipe) {
    inode->content.recipe = std::make_shared<const format::Recipe>(*entry.recipe);
  } else {
    inode->content.recipe.reset();
    inode->content.recipe_id = entry.recipe_id;
  }
  return inode;
}

Result<std::optional<catalog::TreeEntry>> CloneBase::find(Ino directory, format::NodeId page,
                                                          std::string_view name) const {
  format::DirEntry above;
  above.mode = S_IFDIR;
  above.child = page;
  auto found = tree_.lookup({nullptr, &above, rank_of(directory), 0}, name);
  if (found) return std::optional(std::move(*found));
  if (found.error().code() != ErrorCode::kNotFound) return std::move(found).error();
  return std::optional<catalog::TreeEntry>();
}

Result<bool> CloneBase::had_name(Ino directory, std::string_view name) const {
  VARVE_TRY_ASSIGN(const auto above, tree_.get(rank_of(directory)));
  VARVE_TRY_ASSIGN(const auto found, find(directory, above.entry->child, name));
  return found.has_value();
}

Result<void> CloneBase::load_recipe(OpenInode& inode) const {
  if (inode.content.recipe) return {};
  VARVE_TRY_ASSIGN(inode.content.recipe,
                   objects_.recipe(inode.content.recipe_id, inode.content.size));
  return {};
}

}  // namespace varve::version

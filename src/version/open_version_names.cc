// SPDX-License-Identifier: Apache-2.0
// Names in an open version: looking up, making, linking, removing, renaming.
#include <bit>
#include <cerrno>
#include <optional>
#include <utility>

#include "version/open_version.h"
#include "version/sealed_version.h"

namespace varve::version {

namespace {

Result<void> check_name(std::string_view name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos) {
    return Error(ErrorCode::kInvalid, "not a file name", EINVAL);
  }
  if (name.size() > kNameBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a name has at most 255 bytes", ENAMETOOLONG);
  }
  return {};
}

std::size_t bytes_of(const Xattrs& xattrs) {
  std::size_t bytes = 0;
  for (const auto& xattr : xattrs) bytes += xattr.name.size() + xattr.value.size();
  return bytes;
}

}  // namespace

Result<OpenInode*> OpenVersion::directory(Ino ino) {
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  if (!inode->is_directory()) return Error(ErrorCode::kNotDirectory, "not a directory", ENOTDIR);
  if (inode->nlink == 0) return Error(ErrorCode::kNotFound, "the directory was removed", ENOENT);
  return inode;
}

Result<OpenInode*> OpenVersion::child(Ino parent_ino, std::string_view name) {
  if (name.size() > kNameBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a name has at most 255 bytes", ENAMETOOLONG);
  }
  VARVE_TRY_ASSIGN(const auto ino, tree_.find(parent_ino, name));
  if (!ino) return Error(ErrorCode::kNotFound, "no such file", ENOENT);
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(*ino));
  // So a directory is never its own child, nor has two names; removing directories relies on that.
  const bool placed = inode->parent == parent_ino && *ino != kRootIno && *ino != parent_ino;
  if (inode->is_directory() && !placed) {
    return Error(ErrorCode::kCorrupt, "the open version's overlay: a directory is elsewhere", EIO);
  }
  return inode;
}

Result<OpenEntry> OpenVersion::lookup(Ino parent_ino, std::string_view name) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(directory(parent_ino));
  VARVE_TRY_ASSIGN(const auto* inode, child(parent_ino, name));
  return entry_of(*inode);
}

Result<Ino> OpenVersion::parent(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const auto* inode, directory(ino));
  return inode->parent;
}

Result<void> OpenVersion::list(Ino ino, std::string_view after, const Visitor& visit) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(directory(ino));
  return tree_.list(ino, after, [&](std::string_view name, Ino entry) -> Result<bool> {
    VARVE_TRY_ASSIGN(const auto* inode, tree_.get(entry));
    return visit(name, entry_of(*inode));
  });
}

void OpenVersion::touch_directory(OpenInode& dir, std::int64_t children, int subdirectories) {
  dir.children = static_cast<std::uint64_t>(static_cast<std::int64_t>(dir.children) + children);
  tree_.count_entries(children);
  dir.subdirectories =
      static_cast<std::uint32_t>(static_cast<int>(dir.subdirectories) + subdirectories);
  dir.mtime = dir.ctime = parts_.clock->now();
  tree_.touch(dir);
}

Result<OpenEntry> OpenVersion::create(Ino parent_ino, std::string_view name, const NewFile& file) {
  VARVE_TRY(check_name(name));
  if (file.symlink_target.size() > kSymlinkBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a symlink has at most 4095 bytes", ENAMETOOLONG);
  }
  OpenEntry entry;
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
    VARVE_TRY_ASSIGN(const auto taken, tree_.find(parent_ino, name));
    if (taken) return Error(ErrorCode::kExists, "the name is taken", EEXIST);
    VARVE_TRY(admit_record(name.size() + file.symlink_target.size() + bytes_of(file.xattrs)));
    auto inode = std::make_unique<OpenInode>();
    inode->ino = tree_.next_ino();
    inode->mode = file.mode;
    inode->uid = file.uid;
    inode->gid = file.gid;
    inode->rdev = file.rdev;
    inode->symlink_target = file.symlink_target;
    inode->xattrs = file.xattrs;
    inode->mtime = inode->ctime = inode->atime = parts_.clock->now();
    inode->recipe = std::make_shared<const format::Recipe>();
    if (inode->is_directory()) inode->parent = parent_ino;
    if ((dir->mode & S_ISGID) != 0) {
      // As on every Unix file system: the group comes from the directory (inode(7)).
      inode->gid = dir->gid;
      if (inode->is_directory()) inode->mode |= S_ISGID;
    }
    const bool is_directory = inode->is_directory();
    auto* added = tree_.add(std::move(inode));
    tree_.set_name(parent_ino, name, added->ino);
    touch_directory(*dir, 1, is_directory ? 1 : 0);
    entry = entry_of(*added);
  }
  VARVE_TRY(relieve());
  return entry;
}

Result<OpenEntry> OpenVersion::link(Ino target, Ino parent_ino, std::string_view name) {
  VARVE_TRY(check_name(name));
  const std::lock_guard lock(mutex_);
  VARVE_TRY(check_writable());
  VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(target));
  if (inode->is_directory()) {
    return Error(ErrorCode::kNotPermitted, "a directory has one name", EPERM);
  }
  if (inode->nlink == 0) return Error(ErrorCode::kNotFound, "the file was removed", ENOENT);
  VARVE_TRY_ASSIGN(const auto taken, tree_.find(parent_ino, name));
  if (taken) return Error(ErrorCode::kExists, "the name is taken", EEXIST);
  VARVE_TRY(admit_record(name.size()));
  ++inode->nlink;
  inode->ctime = parts_.clock->now();
  tree_.touch(*inode);
  tree_.set_name(parent_ino, name, target);
  touch_directory(*dir, 1, 0);
  return entry_of(*inode);
}

Result<OpenEntry> OpenVersion::clone(VersionReader& source, Rank rank, Ino parent_ino,
                                     std::string_view name) {
  VARVE_TRY(check_name(name));
  auto* const sealed = dynamic_cast<SealedVersion*>(&source);
  if (sealed == nullptr || sealed->info().series != info_.series) {
    return Error(ErrorCode::kOtherVersion, "only versions of one series share files", EXDEV);
  }
  VARVE_TRY_ASSIGN(auto stored, sealed->stored(rank));
  const auto& entry = stored.entry;
  if ((entry.mode & S_IFMT) == S_IFDIR) {
    return Error(ErrorCode::kNotPermitted, "a directory has one name", EPERM);
  }
  const std::pair group(sealed->info().number, entry.link_group);
  const auto linked = [&]() -> std::optional<Ino> {
    const auto known = cloned_groups_.find(group);
    if (entry.link_group == 0 || known == cloned_groups_.end()) return std::nullopt;
    const auto inode = tree_.get(known->second);
    if (!inode || (*inode)->nlink == 0) return std::nullopt;
    return known->second;
  };
  const auto check = [&]() -> Result<OpenInode*> {
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
    VARVE_TRY_ASSIGN(const auto taken, tree_.find(parent_ino, name));
    if (taken) return Error(ErrorCode::kExists, "the name is taken", EEXIST);
    return dir;
  };
  std::optional<Ino> first;
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY(check());
    first = linked();
  }
  if (first) return link(*first, parent_ino, name);
  std::shared_lock references(references_mutex_);
  auto inode = std::make_unique<OpenInode>();
  inode->recipe = std::make_shared<const format::Recipe>();
  if (stored.recipe) {
    VARVE_TRY_ASSIGN(inode->recipe, reachable(stored.recipe));
  }
  inode->mode = entry.mode;
  inode->uid = entry.uid;
  inode->gid = entry.gid;
  inode->rdev = entry.rdev;
  inode->mtime = inode->atime = entry.mtime;
  inode->xattrs = std::move(stored.entry.xattrs);
  inode->symlink_target = std::move(stored.entry.symlink_target);
  inode->size = inode->recipe->bytes();
  inode->hole_bytes = inode->size - inode->recipe->data_bytes();
  OpenEntry made;
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY_ASSIGN(auto* dir, check());
    VARVE_TRY(admit_record(name.size() + bytes_of(inode->xattrs)));
    inode->ino = tree_.next_ino();
    inode->ctime = parts_.clock->now();
    auto* added = tree_.add(std::move(inode));
    tree_.set_name(parent_ino, name, added->ino);
    touch_directory(*dir, 1, 0);
    if (entry.link_group != 0) cloned_groups_[group] = added->ino;
    made = entry_of(*added);
  }
  references.unlock();
  VARVE_TRY(relieve());
  return made;
}

// Removes the name. A file without names is dropped once no handle is open and no caller holds it.
Result<void> OpenVersion::drop_name(OpenInode& dir, std::string_view name, OpenInode& inode) {
  const bool is_directory = inode.is_directory();
  tree_.clear_name(dir.ino, name);
  touch_directory(dir, -1, is_directory ? -1 : 0);
  inode.ctime = parts_.clock->now();
  --inode.nlink;
  if (inode.nlink != 0) {
    tree_.touch(inode);
    return {};
  }
  {
    const std::lock_guard lock(held_mutex_);
    inode.held = keeps_removed_;
    if (inode.held) held_.insert(inode.ino);
  }
  if (inode.held || inode.handles != 0) tree_.erase_record(inode);
  drop_unused(inode);
  drop_forgotten();
  return {};
}

void OpenVersion::drop_unused(OpenInode& inode) {
  if (inode.nlink != 0 || inode.handles != 0 || inode.held) return;
  drop_contents(inode);
  tree_.erase(inode.ino);
}

void OpenVersion::keep_removed() {
  const std::lock_guard lock(held_mutex_);
  keeps_removed_ = true;
}

// Called for every inode that the kernel evicts, so it only notes the removed ones.
void OpenVersion::forget(Ino ino) {
  const std::lock_guard lock(held_mutex_);
  if (held_.erase(ino) != 0) forgotten_.push_back(ino);
}

void OpenVersion::drop_forgotten() {
  std::vector<Ino> forgotten;
  {
    const std::lock_guard lock(held_mutex_);
    forgotten.swap(forgotten_);
  }
  for (const Ino ino : forgotten) {
    const auto found = tree_.get(ino);
    if (!found) continue;
    (*found)->held = false;
    drop_unused(**found);
  }
}

Result<void> OpenVersion::unlink(Ino parent_ino, std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
    VARVE_TRY_ASSIGN(auto* inode, child(parent_ino, name));
    if (inode->is_directory()) return Error(ErrorCode::kIsDirectory, "a directory", EISDIR);
    VARVE_TRY(drop_name(*dir, name, *inode));
  }
  return relieve();
}

Result<void> OpenVersion::remove_directory(Ino parent_ino, std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
    VARVE_TRY_ASSIGN(auto* inode, child(parent_ino, name));
    if (!inode->is_directory()) {
      return Error(ErrorCode::kNotDirectory, "not a directory", ENOTDIR);
    }
    if (inode->children != 0) {
      return Error(ErrorCode::kNotEmpty, "the directory is not empty", ENOTEMPTY);
    }
    VARVE_TRY(drop_name(*dir, name, *inode));
  }
  return relieve();
}

// Fails if the move would put a directory below itself.
Result<void> OpenVersion::check_ancestry(Ino moved, Ino into) {
  // In a damaged overlay, parents may form a circle; the walk then comes back to one that was kept
  // (R. Brent, "An improved Monte Carlo factorization algorithm", 1980).
  Ino kept = 0;
  std::uint64_t steps = 0;
  for (Ino at = into; at != kRootIno; ++steps) {
    if (at == kept) {
      return Error(ErrorCode::kCorrupt, "the open version's overlay: directories in a circle", EIO);
    }
    if (std::has_single_bit(steps)) kept = at;
    if (at == moved) {
      return Error(ErrorCode::kInvalid, "a directory cannot be moved below itself", EINVAL);
    }
    VARVE_TRY_ASSIGN(const auto* inode, tree_.get(at));
    at = inode->parent;
  }
  return {};
}

Result<void> OpenVersion::exchange(OpenInode& from, std::string_view from_name, OpenInode& a,
                                   OpenInode& to, std::string_view to_name, OpenInode& b) {
  if (a.is_directory()) VARVE_TRY(check_ancestry(a.ino, to.ino));
  if (b.is_directory()) VARVE_TRY(check_ancestry(b.ino, from.ino));
  tree_.set_name(from.ino, from_name, b.ino);
  tree_.set_name(to.ino, to_name, a.ino);
  const int moved = (a.is_directory() ? 1 : 0) - (b.is_directory() ? 1 : 0);
  touch_directory(from, 0, -moved);
  touch_directory(to, 0, moved);
  if (a.is_directory()) a.parent = to.ino;
  if (b.is_directory()) b.parent = from.ino;
  a.ctime = b.ctime = parts_.clock->now();
  tree_.touch(a);
  tree_.touch(b);
  return {};
}

Result<void> OpenVersion::rename(Ino from_ino, std::string_view from_name, Ino to_ino,
                                 std::string_view to_name, RenameMode mode) {
  VARVE_TRY(check_name(from_name));
  VARVE_TRY(check_name(to_name));
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(auto* from, directory(from_ino));
    VARVE_TRY_ASSIGN(auto* to, directory(to_ino));
    VARVE_TRY_ASSIGN(auto* moved, child(from_ino, from_name));
    VARVE_TRY_ASSIGN(const auto target_ino, tree_.find(to_ino, to_name));
    OpenInode* target = nullptr;
    if (target_ino) {
      VARVE_TRY_ASSIGN(target, child(to_ino, to_name));
    }
    if (mode == RenameMode::kExchange) {
      if (target == nullptr) return Error(ErrorCode::kNotFound, "no such file", ENOENT);
      return exchange(*from, from_name, *moved, *to, to_name, *target);
    }
    if (target != nullptr && mode == RenameMode::kNoReplace) {
      return Error(ErrorCode::kExists, "the name is taken", EEXIST);
    }
    if (target == moved) return {};  // Two names of one file: POSIX says nothing happens.
    if (moved->is_directory()) VARVE_TRY(check_ancestry(moved->ino, to_ino));
    if (target != nullptr) {
      if (moved->is_directory() && !target->is_directory()) {
        return Error(ErrorCode::kNotDirectory, "not a directory", ENOTDIR);
      }
      if (!moved->is_directory() && target->is_directory()) {
        return Error(ErrorCode::kIsDirectory, "a directory", EISDIR);
      }
      if (target->children != 0 || target == from) {
        return Error(ErrorCode::kNotEmpty, "the directory is not empty", ENOTEMPTY);
      }
      VARVE_TRY(drop_name(*to, to_name, *target));
    }
    const int subdirectory = moved->is_directory() ? 1 : 0;
    tree_.clear_name(from_ino, from_name);
    tree_.set_name(to_ino, to_name, moved->ino);
    touch_directory(*from, -1, -subdirectory);
    touch_directory(*to, 1, subdirectory);
    if (moved->is_directory()) moved->parent = to_ino;
    moved->ctime = parts_.clock->now();
    tree_.touch(*moved);
  }
  return relieve();
}

}  // namespace varve::version

// SPDX-License-Identifier: Apache-2.0
#include "version/open_names.h"

#include <sys/stat.h>

#include <bit>
#include <cstddef>
#include <mutex>
#include <shared_mutex>

#include "version/sealed_version.h"

namespace varve::version {

namespace {

Result<void> check_name(std::string_view name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos) {
    return Error(ErrorCode::kInvalid, "not a file name");
  }
  if (name.size() > kNameBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a name has at most 255 bytes");
  }
  return {};
}

std::size_t bytes_of(const Xattrs& xattrs) {
  std::size_t bytes = 0;
  for (const auto& xattr : xattrs) bytes += xattr.name.size() + xattr.value.size();
  return bytes;
}

// Returns a new inode with the attributes of a sealed file and the given content. The number and
// the time of the change are still missing.
std::unique_ptr<OpenInode> clone_of(format::DirEntry entry,
                                    std::shared_ptr<const format::Recipe> recipe) {
  auto inode = std::make_unique<OpenInode>();
  inode->content.recipe = std::move(recipe);
  inode->mode = entry.mode;
  inode->uid = entry.uid;
  inode->gid = entry.gid;
  inode->rdev = entry.rdev;
  inode->mtime = inode->atime = entry.mtime;
  inode->xattrs = std::move(entry.xattrs);
  inode->symlink_target = std::move(entry.symlink_target);
  inode->content.size = inode->content.recipe->bytes();
  inode->content.hole_bytes = inode->content.size - inode->content.recipe->data_bytes();
  return inode;
}

}  // namespace

Result<OpenInode*> OpenNames::directory(Ino ino) {
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  if (!inode->is_directory()) return Error(ErrorCode::kNotDirectory, "not a directory");
  if (inode->nlink == 0) return Error(ErrorCode::kNotFound, "the directory was removed");
  return inode;
}

Result<OpenInode*> OpenNames::child(Ino parent_ino, std::string_view name) {
  if (name.size() > kNameBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a name has at most 255 bytes");
  }
  VARVE_TRY_ASSIGN(const auto ino, state_.tree.find(parent_ino, name));
  if (!ino) return Error(ErrorCode::kNotFound, "no such file");
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(*ino));
  // So a directory is never its own child, nor has two names. Removing directories relies on both.
  const bool placed =
      inode->directory.parent == parent_ino && *ino != kRootIno && *ino != parent_ino;
  if (inode->is_directory() && !placed) {
    return damaged_overlay("the record of a directory names another parent");
  }
  return inode;
}

Result<OpenInode*> OpenNames::directory_for_new(Ino ino, std::string_view name) {
  VARVE_TRY_ASSIGN(auto* dir, directory(ino));
  VARVE_TRY_ASSIGN(const auto taken, state_.tree.find(ino, name));
  if (taken) return Error(ErrorCode::kExists, "the name is taken");
  return dir;
}

Result<OpenEntry> OpenNames::lookup(Ino parent_ino, std::string_view name) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY(directory(parent_ino));
  VARVE_TRY_ASSIGN(const auto* inode, child(parent_ino, name));
  return inode->entry();
}

Result<Ino> OpenNames::parent(Ino ino) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(const auto* inode, directory(ino));
  return inode->directory.parent;
}

Result<void> OpenNames::list(Ino ino, std::string_view after, const VersionWriter::Visitor& visit) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY(directory(ino));
  return state_.tree.list(ino, after, [&](std::string_view name, Ino entry) -> Result<bool> {
    VARVE_TRY_ASSIGN(const auto* inode, state_.tree.get(entry));
    return visit(name, inode->entry());
  });
}

void OpenNames::touch_directory(OpenInode& dir, std::int64_t children, int subdirectories) {
  dir.directory.children =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(dir.directory.children) + children);
  state_.tree.counters().add_entries(children);
  dir.directory.subdirectories =
      static_cast<std::uint32_t>(static_cast<int>(dir.directory.subdirectories) + subdirectories);
  dir.mtime = dir.ctime = state_.parts.clock->now();
  state_.tree.touch(dir);
}

Result<OpenEntry> OpenNames::create(Ino parent_ino, std::string_view name, const NewFile& file) {
  VARVE_TRY(check_name(name));
  if (file.symlink_target.size() > kSymlinkBytesMax) {
    return Error(ErrorCode::kNameTooLong, "a symlink has at most 4095 bytes");
  }
  OpenEntry entry;
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory_for_new(parent_ino, name));
    VARVE_TRY(
        state_.admit_record(name.size() + file.symlink_target.size() + bytes_of(file.xattrs)));
    auto inode = std::make_unique<OpenInode>();
    inode->ino = state_.tree.counters().take_ino();
    inode->mode = file.mode;
    inode->uid = file.uid;
    inode->gid = file.gid;
    inode->rdev = file.rdev;
    inode->symlink_target = file.symlink_target;
    inode->xattrs = file.xattrs;
    inode->mtime = inode->ctime = inode->atime = state_.parts.clock->now();
    inode->content.clear_recipe();
    if (inode->is_directory()) inode->directory.parent = parent_ino;
    if ((dir->mode & S_ISGID) != 0) {
      // As on every Unix file system: the group comes from the directory (inode(7)).
      inode->gid = dir->gid;
      if (inode->is_directory()) inode->mode |= S_ISGID;
    }
    const bool is_directory = inode->is_directory();
    auto* added = state_.tree.add(std::move(inode));
    state_.tree.set_name(parent_ino, name, added->ino);
    touch_directory(*dir, 1, is_directory ? 1 : 0);
    entry = added->entry();
  }
  VARVE_TRY(checkpointer_.relieve());
  return entry;
}

Result<OpenEntry> OpenNames::link(Ino target, Ino parent_ino, std::string_view name) {
  VARVE_TRY(check_name(name));
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY(checkpointer_.check_writable());
  VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(target));
  if (inode->is_directory()) {
    return Error(ErrorCode::kNotPermitted, "a directory cannot have a second name");
  }
  if (inode->nlink == 0) return Error(ErrorCode::kNotFound, "the file was removed");
  VARVE_TRY_ASSIGN(const auto taken, state_.tree.find(parent_ino, name));
  if (taken) return Error(ErrorCode::kExists, "the name is taken");
  VARVE_TRY(state_.admit_record(name.size()));
  ++inode->nlink;
  inode->ctime = state_.parts.clock->now();
  state_.tree.touch(*inode);
  state_.tree.set_name(parent_ino, name, target);
  touch_directory(*dir, 1, 0);
  return inode->entry();
}

std::optional<Ino> OpenNames::cloned_before(const LinkGroup& group) {
  const auto known = cloned_groups_.find(group);
  if (group.second == 0 || known == cloned_groups_.end()) return std::nullopt;
  const auto inode = state_.tree.get(known->second);
  if (!inode || (*inode)->nlink == 0) return std::nullopt;
  return known->second;
}

Result<OpenEntry> OpenNames::clone(VersionReader& source, Rank rank, Ino parent_ino,
                                   std::string_view name) {
  VARVE_TRY(check_name(name));
  auto* const sealed = dynamic_cast<SealedVersion*>(&source);
  if (sealed == nullptr || sealed->info().series != state_.info.series) {
    return Error(ErrorCode::kOtherVersion, "only versions of the same series can share files");
  }
  VARVE_TRY_ASSIGN(auto stored, sealed->stored(rank));
  if ((stored.entry.mode & S_IFMT) == S_IFDIR) {
    return Error(ErrorCode::kNotPermitted, "a directory cannot have a second name");
  }
  const LinkGroup group(sealed->info().number, stored.entry.link_group);
  std::optional<Ino> first;
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY(directory_for_new(parent_ino, name));
    first = cloned_before(group);
  }
  if (first) return link(*first, parent_ino, name);
  std::shared_lock references(state_.references_mutex);
  auto recipe = std::make_shared<const format::Recipe>();
  if (stored.recipe) {
    VARVE_TRY_ASSIGN(recipe, clones_.reachable(stored.recipe));
  }
  auto inode = clone_of(std::move(stored.entry), std::move(recipe));
  OpenEntry made;
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory_for_new(parent_ino, name));
    VARVE_TRY(state_.admit_record(name.size() + bytes_of(inode->xattrs)));
    inode->ino = state_.tree.counters().take_ino();
    inode->ctime = state_.parts.clock->now();
    auto* added = state_.tree.add(std::move(inode));
    state_.tree.set_name(parent_ino, name, added->ino);
    touch_directory(*dir, 1, 0);
    if (group.second != 0) cloned_groups_[group] = added->ino;
    made = added->entry();
  }
  references.unlock();
  VARVE_TRY(checkpointer_.relieve());
  return made;
}

// A file without names is dropped once no handle is open and no caller holds it.
Result<void> OpenNames::drop_name(const Place& place, OpenInode& inode) {
  const bool is_directory = inode.is_directory();
  state_.tree.clear_name(place.directory.ino, place.name);
  touch_directory(place.directory, -1, is_directory ? -1 : 0);
  inode.ctime = state_.parts.clock->now();
  --inode.nlink;
  if (inode.nlink != 0) {
    state_.tree.touch(inode);
    return {};
  }
  inode.held = removed_.hold(inode.ino);
  if (inode.held || inode.handles != 0) state_.tree.erase_record(inode);
  contents_.drop_unused(inode);
  contents_.drop_forgotten();
  return {};
}

Result<void> OpenNames::unlink(Ino parent_ino, std::string_view name) {
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
    VARVE_TRY_ASSIGN(auto* inode, child(parent_ino, name));
    if (inode->is_directory()) return Error(ErrorCode::kIsDirectory, "a directory");
    VARVE_TRY(drop_name({*dir, name}, *inode));
  }
  return checkpointer_.relieve();
}

Result<void> OpenNames::remove_directory(Ino parent_ino, std::string_view name) {
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY_ASSIGN(auto* dir, directory(parent_ino));
    VARVE_TRY_ASSIGN(auto* inode, child(parent_ino, name));
    if (!inode->is_directory()) {
      return Error(ErrorCode::kNotDirectory, "not a directory");
    }
    if (inode->directory.children != 0) {
      return Error(ErrorCode::kNotEmpty, "the directory is not empty");
    }
    VARVE_TRY(drop_name({*dir, name}, *inode));
  }
  return checkpointer_.relieve();
}

Result<void> OpenNames::check_ancestry(Ino moved, Ino into) {
  // In a damaged overlay, parents may form a cycle. The walk then returns to the kept directory
  // (R. Brent, "An improved Monte Carlo factorization algorithm", 1980).
  Ino kept = 0;
  std::uint64_t steps = 0;
  for (Ino at = into; at != kRootIno; ++steps) {
    if (at == kept) return damaged_overlay("directories in a circle");
    if (std::has_single_bit(steps)) kept = at;
    if (at == moved) {
      return Error(ErrorCode::kInvalid, "a directory cannot be moved below itself");
    }
    VARVE_TRY_ASSIGN(const auto* inode, state_.tree.get(at));
    at = inode->directory.parent;
  }
  return {};
}

Result<void> OpenNames::exchange(const Place& from, OpenInode& a, const Place& to, OpenInode& b) {
  const Ino from_ino = from.directory.ino;
  const Ino to_ino = to.directory.ino;
  if (a.is_directory()) VARVE_TRY(check_ancestry(a.ino, to_ino));
  if (b.is_directory()) VARVE_TRY(check_ancestry(b.ino, from_ino));
  state_.tree.set_name(from_ino, from.name, b.ino);
  state_.tree.set_name(to_ino, to.name, a.ino);
  const int moved = (a.is_directory() ? 1 : 0) - (b.is_directory() ? 1 : 0);
  touch_directory(from.directory, 0, -moved);
  touch_directory(to.directory, 0, moved);
  if (a.is_directory()) a.directory.parent = to_ino;
  if (b.is_directory()) b.directory.parent = from_ino;
  a.ctime = b.ctime = state_.parts.clock->now();
  state_.tree.touch(a);
  state_.tree.touch(b);
  return {};
}

Result<void> OpenNames::check_replaceable(const OpenInode& moved, const OpenInode& target,
                                          const OpenInode& from) {
  if (moved.is_directory() && !target.is_directory()) {
    return Error(ErrorCode::kNotDirectory, "not a directory");
  }
  if (!moved.is_directory() && target.is_directory()) {
    return Error(ErrorCode::kIsDirectory, "a directory");
  }
  if (target.directory.children != 0 || target.ino == from.ino) {
    return Error(ErrorCode::kNotEmpty, "the directory is not empty");
  }
  return {};
}

Result<void> OpenNames::rename(Ino from_ino, std::string_view from_name, Ino to_ino,
                               std::string_view to_name, RenameMode mode) {
  VARVE_TRY(check_name(from_name));
  VARVE_TRY(check_name(to_name));
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(checkpointer_.check_writable());
    VARVE_TRY_ASSIGN(auto* from, directory(from_ino));
    VARVE_TRY_ASSIGN(auto* to, directory(to_ino));
    VARVE_TRY_ASSIGN(auto* moved, child(from_ino, from_name));
    VARVE_TRY_ASSIGN(const auto target_ino, state_.tree.find(to_ino, to_name));
    OpenInode* target = nullptr;
    if (target_ino) {
      VARVE_TRY_ASSIGN(target, child(to_ino, to_name));
    }
    if (mode == RenameMode::kExchange) {
      if (target == nullptr) return Error(ErrorCode::kNotFound, "no such file");
      return exchange({*from, from_name}, *moved, {*to, to_name}, *target);
    }
    if (target != nullptr && mode == RenameMode::kNoReplace) {
      return Error(ErrorCode::kExists, "the name is taken");
    }
    if (target == moved) return {};  // Two names of the same file: by POSIX, nothing happens.
    if (moved->is_directory()) VARVE_TRY(check_ancestry(moved->ino, to_ino));
    if (target != nullptr) {
      VARVE_TRY(check_replaceable(*moved, *target, *from));
      VARVE_TRY(drop_name({*to, to_name}, *target));
    }
    const int subdirectory = moved->is_directory() ? 1 : 0;
    state_.tree.clear_name(from_ino, from_name);
    state_.tree.set_name(to_ino, to_name, moved->ino);
    touch_directory(*from, -1, -subdirectory);
    touch_directory(*to, 1, subdirectory);
    if (moved->is_directory()) moved->directory.parent = to_ino;
    moved->ctime = state_.parts.clock->now();
    state_.tree.touch(*moved);
  }
  return checkpointer_.relieve();
}

}  // namespace varve::version

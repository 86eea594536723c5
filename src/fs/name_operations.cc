// SPDX-License-Identifier: Apache-2.0
#include "fs/name_operations.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "fs/new_file.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

// From linux/fs.h, a header in conflict with other headers.
constexpr unsigned kRenameNoReplace = 1U << 0;
constexpr unsigned kRenameExchange = 1U << 1;
/// Waking another thread takes longer than cloning a file of up to kClonedAtOnceMax bytes.
constexpr std::uint64_t kClonedAtOnceMax = 1U << 20;

/// Returns the entry, or, for a name that does not exist, how long the kernel may cache the
/// absence.
Result<Reply> found_or_absent(Result<fuse_entry_param> entry, double absent_timeout_s) {
  if (entry || entry.error().code() != ErrorCode::kNotFound) return entry_or(std::move(entry));
  fuse_entry_param absent{};
  absent.entry_timeout = absent_timeout_s;
  return Reply(EntryReply{absent});
}

RenameMode rename_mode(unsigned flags) {
  if (flags == kRenameNoReplace) return RenameMode::kNoReplace;
  if (flags == kRenameExchange) return RenameMode::kExchange;
  return RenameMode::kReplace;
}

}  // namespace

Result<Reply> NameOperations::lookup(fuse_ino_t parent, std::string_view name) {
  // The kernel looks up "." and ".." only for a node known from a file handle.
  if (name == ".") {
    return Reply(Later{[this, parent] { return entry_or(handles_.look_up_self(parent)); }});
  }
  if (name == "..") {
    return Reply(Later{[this, parent] { return entry_or(handles_.look_up_parent(parent)); }});
  }
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve(parent));
  switch (node.kind) {
    case Node::Kind::kRoot:
      return found_or_absent(versions_.look_up_series(name), 0);
    case Node::Kind::kSeries:
      // The first lookup of a version loads the version from disk.
      return Reply(Later{[this, node, wanted = std::string(name)] {
        return found_or_absent(versions_.look_up_version(node, wanted), 0);
      }});
    case Node::Kind::kBeside:
      return Reply(Later{[this, node, wanted = std::string(name)] {
        return found_or_absent(beside_.look_up(node, wanted), 0);
      }});
    case Node::Kind::kLatest:
      return Reply(Refusal{ENOTDIR});
    case Node::Kind::kRemoved:
      return Reply(Refusal{ENOENT});
    case Node::Kind::kOpen: {
      const auto entry = node.writer->lookup(node.ino, name);
      return found_or_absent(entry ? Result(attributes_.entry(*node.slot, *entry)) : entry.error(),
                             kOpenTimeoutS);
    }
    case Node::Kind::kSealed: {
      const auto entry = node.reader->lookup(node.rank, name);
      if (entry && removals_.hides(*node.slot, entry->rank)) return Reply(Refusal{ENOENT});
      return found_or_absent(entry ? Result(attributes_.entry(*node.slot, *entry)) : entry.error(),
                             kSealedTimeoutS);
    }
  }
  return Reply(Refusal{EIO});
}

Result<Reply> NameOperations::make_file(const Caller& caller, fuse_ino_t parent,
                                        const Wanted& wanted) {
  const auto seen = nodes_.resolve(parent);
  if (seen && BesideNames::is_place(*seen)) return make_beside(caller, *seen, wanted);
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve_open(parent));
  VARVE_TRY_ASSIGN(NewFile file, new_file(caller, attributes_.show(), node, wanted.mode));
  file.rdev = wanted.rdev;
  file.symlink_target = wanted.target;
  VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->create(node.ino, wanted.name, file));
  return Reply(EntryReply{attributes_.entry(*node.slot, entry)});
}

Result<Reply> NameOperations::make_beside(const Caller& caller, const Node& directory,
                                          const Wanted& wanted) {
  VARVE_TRY_ASSIGN(NewFile file, new_file(caller, attributes_.show(), directory, wanted.mode));
  file.symlink_target = wanted.target;
  return Reply(Later{[this, directory, name = std::string(wanted.name), file = std::move(file)] {
    return entry_or(beside_.create(directory, name, file));
  }});
}

Result<Reply> NameOperations::mkdir(const Caller& caller, fuse_ino_t parent, const Wanted& wanted) {
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve(parent));
  const mode_t mode = S_IFDIR | (wanted.mode & 07777);
  const bool makes_series = node.kind == Node::Kind::kRoot;
  const bool makes_version =
      node.kind == Node::Kind::kSeries && !beside_.is_folder_name(wanted.name);
  if (!makes_series && !makes_version) {
    return make_file(caller, parent, {.name = wanted.name, .mode = mode, .rdev = 0, .target = {}});
  }
  if (versions_.read_only()) return Reply(Refusal{EROFS});
  if (makes_series) {
    return Reply(Later{
        [this, name = std::string(wanted.name)] { return entry_or(versions_.make_series(name)); }});
  }
  VARVE_TRY_ASSIGN(NewFile root, new_file(caller, attributes_.show(), node, mode));
  return Reply(Later{
      [this, series = node.slot->series(), name = std::string(wanted.name),
       root = std::move(root)] { return entry_or(versions_.make_version(series, name, root)); }});
}

Result<Reply> NameOperations::link(fuse_ino_t ino, fuse_ino_t parent, std::string_view name) {
  VARVE_TRY_ASSIGN(const Node directory, nodes_.resolve_open(parent));
  VARVE_TRY_ASSIGN(const Node target, nodes_.resolve(ino));
  if (target.slot != directory.slot) return link_sealed(target, directory, name);
  VARVE_TRY_ASSIGN(const OpenEntry entry, directory.writer->link(target.ino, directory.ino, name));
  return Reply(EntryReply{attributes_.entry(*directory.slot, entry)});
}

/// Gives a file of a sealed version a name in an open version. The new file is separate, but shares
/// the chunks. The kernel accepts any inode in the reply, even if the kernel asked for another
/// inode.
Result<Reply> NameOperations::link_sealed(const Node& target, const Node& directory,
                                          std::string_view name) {
  if (target.kind != Node::Kind::kSealed ||
      target.slot->series().id != directory.slot->series().id) {
    return Reply(Refusal{target.kind == Node::Kind::kLatest ? EPERM : EXDEV});
  }
  const auto clone = [this, target, directory, wanted = std::string(name)]() -> Result<Reply> {
    VARVE_TRY_ASSIGN(const OpenEntry entry,
                     directory.writer->clone(*target.reader, target.rank, directory.ino, wanted));
    return Reply(EntryReply{attributes_.entry(*directory.slot, entry)});
  };
  // A short recipe is a part of the directory's page, and the kernel's lookup has just read the
  // page.
  const auto source = target.reader->get(target.rank);
  if (source && source->attributes.size <= kClonedAtOnceMax) return clone();
  return Reply(Later{clone});
}

Result<Reply> NameOperations::remove_sealed(const Caller& caller, const Node& directory,
                                            std::string_view name, SealedRemovals::What what) {
  if (!removals_.are_accepted()) return Reply(Refusal{EROFS});
  if (!removals_.may_remove(caller)) return Reply(Refusal{EACCES});
  if (removals_.is_under_way(*directory.slot)) {
    return done_or(removals_.remove(directory, name, what));
  }
  return Reply(Later{[this, directory, wanted = std::string(name), what] {
    return done_or(removals_.remove(directory, wanted, what));
  }});
}

Result<Reply> NameOperations::unlink(const Caller& caller, fuse_ino_t parent,
                                     std::string_view name) {
  const auto seen = nodes_.resolve(parent);
  if (seen && seen->kind == Node::Kind::kSealed) {
    return remove_sealed(caller, *seen, name, SealedRemovals::What::kFile);
  }
  if (seen && BesideNames::is_place(*seen) && !versions_.read_only()) {
    return Reply(Later{[this, node = *seen, wanted = std::string(name)] {
      return done_or(beside_.unlink(node, wanted));
    }});
  }
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve_open(parent));
  return done_or(node.writer->unlink(node.ino, name));
}

Result<Reply> NameOperations::rmdir(const Caller& caller, fuse_ino_t parent,
                                    std::string_view name) {
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve(parent));
  switch (node.kind) {
    case Node::Kind::kRoot:
    case Node::Kind::kSeries:
    case Node::Kind::kBeside:
      if (versions_.read_only()) return Reply(Refusal{EROFS});
      return Reply(Later{[this, node, wanted = std::string(name)] {
        const bool is_version = node.kind == Node::Kind::kSeries && !beside_.has(node, wanted);
        if (node.kind != Node::Kind::kRoot && !is_version) {
          return done_or(beside_.remove_directory(node, wanted));
        }
        return done_or(node.kind == Node::Kind::kRoot
                           ? versions_.remove_series(wanted)
                           : versions_.remove_version(node.slot->series(), wanted));
      }});
    case Node::Kind::kOpen:
      return done_or(node.writer->remove_directory(node.ino, name));
    case Node::Kind::kRemoved:
      return Reply(Refusal{ENOENT});
    case Node::Kind::kSealed:
      return remove_sealed(caller, node, name, SealedRemovals::What::kDirectory);
    case Node::Kind::kLatest:
      return Reply(Refusal{ENOTDIR});
  }
  return Reply(Refusal{EIO});
}

Result<void> NameOperations::allow_rename(const Node& from, const Node& to) const {
  if (from.kind == Node::Kind::kSealed || to.kind == Node::Kind::kSealed) {
    return Error(ErrorCode::kReadOnly, "the version is sealed");
  }
  if (versions_.read_only()) return Error(ErrorCode::kReadOnly, "mounted read-only");
  const bool inside = from.kind == Node::Kind::kOpen && to.kind == Node::Kind::kOpen;
  // Not kOtherVersion: mv(1) would then copy the whole version and delete the original.
  const bool in_series =
      BesideNames::is_place(from) && BesideNames::is_place(to) && from.slot == to.slot;
  if (!inside && !in_series) {
    return Error(ErrorCode::kNotPermitted,
                 "a version cannot leave its series, nor a file its version");
  }
  if (from.slot != to.slot) return Error(ErrorCode::kOtherVersion, "the versions differ");
  return {};
}

Result<Reply> NameOperations::rename_in_series(const Node& from, std::string_view name,
                                               const Node& to, std::string_view new_name,
                                               unsigned flags) {
  if (flags == kRenameExchange) return Reply(Refusal{EINVAL});
  return Reply(Later{[this, from, to, old_name = std::string(name), wanted = std::string(new_name),
                      mode = rename_mode(flags)] {
    const bool in_folder = from.kind == Node::Kind::kBeside || to.kind == Node::Kind::kBeside;
    if (in_folder || beside_.has(from, old_name)) {
      return done_or(beside_.rename(from, old_name, to, wanted, mode));
    }
    return done_or(versions_.rename_version(from.slot->series(), old_name, wanted));
  }});
}

Result<Reply> NameOperations::rename(const Place& from, const Place& to, unsigned flags) {
  VARVE_TRY_ASSIGN(const Node old_parent, nodes_.resolve(from.directory));
  VARVE_TRY_ASSIGN(const Node new_parent, nodes_.resolve(to.directory));
  VARVE_TRY(allow_rename(old_parent, new_parent));
  if (flags != 0 && flags != kRenameNoReplace && flags != kRenameExchange) {
    return Reply(Refusal{EINVAL});
  }
  if (BesideNames::is_place(old_parent)) {
    return rename_in_series(old_parent, from.name, new_parent, to.name, flags);
  }
  return done_or(old_parent.writer->rename(old_parent.ino, from.name, new_parent.ino, to.name,
                                           rename_mode(flags)));
}

}  // namespace varve::fs

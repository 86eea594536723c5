// SPDX-License-Identifier: Apache-2.0
// Creates, finds, moves and removes names.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "fs/errno_map.h"
#include "fs/front_end.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

// From linux/fs.h, which clashes with other headers.
constexpr unsigned kRenameNoReplace = 1U << 0;
constexpr unsigned kRenameExchange = 1U << 1;

/// Tells the kernel that a name does not exist, and for how long it may cache that.
void reply_absent(fuse_req_t req, double timeout_s) {
  fuse_entry_param absent{};
  absent.entry_timeout = timeout_s;
  fuse_reply_entry(req, &absent);
}

}  // namespace

void FrontEnd::lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  // The kernel looks up these names only for a node known from a file handle.
  if (const std::string_view wanted = name; wanted == "." || wanted == "..") {
    later(req, [this, req, parent, up = wanted == ".."] {
      reply_entry(req, look_up_handle(parent, up), "lookup");
    });
    return;
  }
  const auto node = resolve(parent);
  if (!node) {
    fuse_reply_err(req, report("lookup", node.error()));
    return;
  }
  const auto reply = [this, req](const Result<fuse_entry_param>& entry, double absent_timeout_s) {
    if (!entry && entry.error().code() == ErrorCode::kNotFound) {
      reply_absent(req, absent_timeout_s);
    } else {
      reply_entry(req, entry, "lookup");
    }
  };
  switch (node->kind) {
    case Node::Kind::kRoot:
      reply(look_up_series(name), 0);
      return;
    case Node::Kind::kSeries:
      // The first lookup of a version loads it from disk.
      later(req, [this, reply, series = node->slot->series(), wanted = std::string(name)] {
        reply(look_up_version(series, wanted), 0);
      });
      return;
    case Node::Kind::kLatest:
      fuse_reply_err(req, ENOTDIR);
      return;
    case Node::Kind::kRemoved:
      fuse_reply_err(req, ENOENT);
      return;
    case Node::Kind::kOpen: {
      const auto entry = node->writer->lookup(node->ino, name);
      reply(entry ? Result(entry_of(*node->slot, *entry)) : entry.error(), kOpenTimeoutS);
      return;
    }
    case Node::Kind::kSealed: {
      const auto entry = node->reader->lookup(node->rank, name);
      reply(entry ? Result(entry_of(*node->slot, *entry)) : entry.error(), kSealedTimeoutS);
      return;
    }
  }
}

void FrontEnd::make_file(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
                         dev_t rdev, const char* target) {
  const auto node = resolve_open(parent);
  if (!node) {
    fuse_reply_err(req, report("create", node.error()));
    return;
  }
  auto file = new_file(req, *node, mode);
  if (!file) {
    fuse_reply_err(req, report("create", file.error()));
    return;
  }
  file->rdev = rdev;
  file->symlink_target = target;
  const auto entry = node->writer->create(node->ino, name, *file);
  reply_entry(req, entry ? Result(entry_of(*node->slot, *entry)) : entry.error(), "create");
}

void FrontEnd::mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  make_file(req, parent, name, mode, rdev, "");
}

void FrontEnd::symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  make_file(req, parent, name, S_IFLNK | 0777, 0, target);
}

void FrontEnd::mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  const auto node = resolve(parent);
  if (!node) {
    fuse_reply_err(req, report("mkdir", node.error()));
    return;
  }
  const bool makes_series = node->kind == Node::Kind::kRoot;
  if (!makes_series && node->kind != Node::Kind::kSeries) {
    make_file(req, parent, name, S_IFDIR | (mode & 07777), 0, "");
    return;
  }
  if (repository_.read_only()) {
    fuse_reply_err(req, EROFS);
    return;
  }
  if (makes_series) {
    later(req, [this, req, wanted = std::string(name)] {
      reply_entry(req, make_series(wanted), "mkdir");
    });
    return;
  }
  auto root = new_file(req, *node, S_IFDIR | (mode & 07777));
  if (!root) {
    fuse_reply_err(req, report("mkdir", root.error()));
    return;
  }
  later(req, [this, req, series = node->slot->series(), wanted = std::string(name), root = *root] {
    reply_entry(req, make_version(series, wanted, root), "mkdir");
  });
}

void FrontEnd::link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  const auto directory = resolve_open(parent);
  if (!directory) {
    fuse_reply_err(req, report("link", directory.error()));
    return;
  }
  const auto target = resolve(ino);
  if (!target) {
    fuse_reply_err(req, report("link", target.error()));
    return;
  }
  if (target->slot != directory->slot) {
    link_sealed(req, *target, *directory, name);
    return;
  }
  const auto entry = directory->writer->link(target->ino, directory->ino, name);
  reply_entry(req, entry ? Result(entry_of(*directory->slot, *entry)) : entry.error(), "link");
}

/// Gives a file of a sealed version a name in an open one. The new file is separate, but shares the
/// chunks. The kernel accepts the inode in the reply, even if it asked for another.
void FrontEnd::link_sealed(fuse_req_t req, const Node& target, const Node& directory,
                           const char* name) {
  if (target.kind != Node::Kind::kSealed ||
      target.slot->series().id != directory.slot->series().id) {
    fuse_reply_err(req, target.kind == Node::Kind::kLatest ? EPERM : EXDEV);
    return;
  }
  later(req, [this, req, target, directory, wanted = std::string(name)] {
    const auto entry = directory.writer->clone(*target.reader, target.rank, directory.ino, wanted);
    reply_entry(req, entry ? Result(entry_of(*directory.slot, *entry)) : entry.error(), "link");
  });
}

void FrontEnd::unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const auto node = resolve_open(parent);
  reply_result(req, node ? node->writer->unlink(node->ino, name) : node.error(), "unlink");
}

void FrontEnd::rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  const auto node = resolve(parent);
  if (!node) {
    fuse_reply_err(req, report("rmdir", node.error()));
    return;
  }
  switch (node->kind) {
    case Node::Kind::kRoot:
    case Node::Kind::kSeries:
      if (repository_.read_only()) {
        fuse_reply_err(req, EROFS);
        return;
      }
      later(req, [this, req, node = *node, wanted = std::string(name)] {
        reply_result(req,
                     node.kind == Node::Kind::kRoot ? remove_series(wanted)
                                                    : remove_version(node.slot->series(), wanted),
                     "rmdir");
      });
      return;
    case Node::Kind::kOpen:
      reply_result(req, node->writer->remove_directory(node->ino, name), "rmdir");
      return;
    case Node::Kind::kRemoved:
      fuse_reply_err(req, ENOENT);
      return;
    case Node::Kind::kLatest:
    case Node::Kind::kSealed:
      fuse_reply_err(req, EROFS);
      return;
  }
}

Result<void> FrontEnd::allow_rename(const Node& from, const Node& to) const {
  if (from.kind == Node::Kind::kSealed || to.kind == Node::Kind::kSealed) {
    return Error(ErrorCode::kReadOnly, "the version is sealed");
  }
  if (repository_.read_only()) return Error(ErrorCode::kReadOnly, "mounted read-only");
  const bool inside = from.kind == Node::Kind::kOpen && to.kind == Node::Kind::kOpen;
  // Not kOtherVersion: mv(1) would then copy the whole version and delete the original.
  const bool in_series = from.kind == Node::Kind::kSeries && from.slot == to.slot;
  if (!inside && !in_series) {
    return Error(ErrorCode::kNotPermitted, "versions stay in their series and files in versions");
  }
  if (from.slot != to.slot) return Error(ErrorCode::kOtherVersion, "the versions differ");
  return {};
}

Result<void> FrontEnd::rename_inside(const Node& from, std::string_view name, const Node& to,
                                     std::string_view new_name, unsigned flags) {
  RenameMode mode = RenameMode::kReplace;
  if (flags == kRenameNoReplace) mode = RenameMode::kNoReplace;
  if (flags == kRenameExchange) mode = RenameMode::kExchange;
  return from.writer->rename(from.ino, name, to.ino, new_name, mode);
}

void FrontEnd::rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                      const char* new_name, unsigned flags) {
  const auto from = resolve(parent);
  const auto to = resolve(new_parent);
  if (!from || !to) {
    fuse_reply_err(req, report("rename", from ? to.error() : from.error()));
    return;
  }
  const auto allowed = allow_rename(*from, *to);
  if (!allowed) {
    fuse_reply_err(req, report("rename", allowed.error()));
    return;
  }
  const bool of_version = from->kind == Node::Kind::kSeries;
  if (flags != 0 && flags != kRenameNoReplace && (flags != kRenameExchange || of_version)) {
    fuse_reply_err(req, EINVAL);
    return;
  }
  if (!of_version) {
    reply_result(req, rename_inside(*from, name, *to, new_name, flags), "rename");
    return;
  }
  later(req, [this, req, series = from->slot->series(), old_name = std::string(name),
              wanted = std::string(new_name)] {
    reply_result(req, rename_version(series, old_name, wanted), "rename");
  });
}

void FrontEnd::create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
                      const fuse_file_info& info) {
  const auto node = resolve_open(parent);
  if (!node) {
    fuse_reply_err(req, report("create", node.error()));
    return;
  }
  const auto wanted = new_file(req, *node, S_IFREG | (mode & 07777));
  const auto entry =
      wanted ? node->writer->create(node->ino, name, *wanted) : Result<OpenEntry>(wanted.error());
  if (!entry) {
    fuse_reply_err(req, report("create", entry.error()));
    return;
  }
  const int access = info.flags & O_ACCMODE;
  auto file = node->writer->open(entry->ino, access != O_RDONLY);
  if (!file) {
    fuse_reply_err(req, report("create", file.error()));
    return;
  }
  fuse_file_info opened = info;
  opened.direct_io = access == O_WRONLY;
  auto handle = std::make_shared<FileHandle>(*node->slot, std::move(*file), access != O_RDONLY);
  if ((mode & (S_ISUID | S_ISGID)) == 0) handle->set_plain_at(privileges_given_.load());
  opened.fh = files_.add(std::move(handle));
  const fuse_entry_param reply = entry_of(*node->slot, *entry);
  if (fuse_reply_create(req, &reply, &opened) != 0) files_.remove(opened.fh);
}

}  // namespace varve::fs

// SPDX-License-Identifier: Apache-2.0
// Lists directories.
#include <sys/stat.h>

#include <cerrno>

#include "fs/errno_map.h"
#include "fs/front_end.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

constexpr std::uint64_t kDotEntries = 2;  // "." and "..", before all names.

/// The reply to one readdir or readdirplus request.
class DirectoryReply {
 public:
  DirectoryReply(fuse_req_t req, char* buffer, std::size_t room, bool plus)
      : req_(req), buffer_(buffer), room_(room), plus_(plus) {}

  /// Adds an entry. Returns false if it does not fit. An entry with node id 0 has only the name,
  /// type and st_ino; the kernel looks up the rest when needed.
  bool add(const std::string& name, const fuse_entry_param& entry, std::uint64_t offset) {
    char* place = buffer_ + used_;
    const std::size_t left = room_ - used_;
    const auto next = static_cast<off_t>(offset);
    const std::size_t bytes =
        plus_ ? fuse_add_direntry_plus(req_, place, left, name.c_str(), &entry, next)
              : fuse_add_direntry(req_, place, left, name.c_str(), &entry.attr, next);
    if (bytes > left) return false;
    used_ += bytes;
    return true;
  }
  bool add_name(const std::string& name, mode_t type, std::uint64_t st_ino, std::uint64_t offset) {
    fuse_entry_param entry{};
    entry.attr.st_ino = st_ino;
    entry.attr.st_mode = type;
    return add(name, entry, offset);
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  fuse_req_t req_;
  char* buffer_;
  std::size_t room_;
  bool plus_;
  std::size_t used_ = 0;
};

}  // namespace

void FrontEnd::opendir(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& info) {
  const auto node = resolve(ino);
  if (!node) {
    fuse_reply_err(req, report("opendir", node.error()));
    return;
  }
  fuse_file_info opened = info;
  if (node->kind == Node::Kind::kSealed) {
    opened.keep_cache = 1;
    opened.cache_readdir = 1;
  }
  opened.fh = directories_.add(std::make_shared<DirHandle>(ino));
  if (fuse_reply_open(req, &opened) != 0) directories_.remove(opened.fh);
}

void FrontEnd::releasedir(fuse_req_t req, const fuse_file_info& info) {
  directories_.remove(info.fh);
  fuse_reply_err(req, 0);
}

void FrontEnd::readdir(fuse_req_t req, std::size_t size, off_t offset, const fuse_file_info& info,
                       bool plus) {
  const auto handle = directories_.get(info.fh);
  if (handle == nullptr) {
    fuse_reply_err(req, EBADF);
    return;
  }
  const auto node = resolve(handle->node_id());
  if (!node) {
    fuse_reply_err(req, report("readdir", node.error()));
    return;
  }
  const std::lock_guard one(handle->mutex);
  const auto buffer = buffers_.take();
  DirectoryReply reply(req, reinterpret_cast<char*>(buffer.data()),
                       std::min(size, BufferPool::kBufferBytes), plus);
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto done = [&]() -> Result<void> {
    if (begin < kDotEntries) {
      VARVE_TRY_ASSIGN(const struct stat self, stat_of(*node));
      VARVE_TRY_ASSIGN(const std::uint64_t parent, parent_st_ino(*node));
      if (begin == 0 && !reply.add_name(".", S_IFDIR, self.st_ino, 1)) return {};
      if (!reply.add_name("..", S_IFDIR, parent, kDotEntries)) return {};
    }
    const auto after = std::max(begin, kDotEntries);
    const auto add = [&reply](const std::string& name, const fuse_entry_param& entry,
                              std::uint64_t next) { return reply.add(name, entry, next); };
    switch (node->kind) {
      case Node::Kind::kOpen:
        return list_open(*node, *handle, after, add);
      case Node::Kind::kSealed:
        return list_sealed(*node, *handle, after, add);
      case Node::Kind::kLatest:
        return Error(ErrorCode::kNotDirectory, "latest is a symbolic link");
      case Node::Kind::kRemoved:
        return {};
      default:
        return list_upper(*node, *handle, begin, add);
    }
  }();
  const bool was_removed =
      node->kind == Node::Kind::kRemoved ||
      (!done && node->kind == Node::Kind::kOpen &&
       (done.error().code() == ErrorCode::kStale || done.error().code() == ErrorCode::kNotFound));
  if (done || was_removed) {  // A directory removed while it is open lists nothing.
    fuse_reply_buf(req, reinterpret_cast<const char*>(buffer.data()), reply.used());
  } else {
    fuse_reply_err(req, report("readdir", done.error()));
  }
}

Result<std::uint64_t> FrontEnd::parent_st_ino(const Node& node) {
  if (node.kind == Node::Kind::kRoot || node.kind == Node::Kind::kSeries ||
      node.kind == Node::Kind::kRemoved) {
    return kRootStIno;
  }
  const SeriesId series = node.slot->series().id;
  if (node.is_version_root()) return st_ino_of_series(series);
  if (node.kind == Node::Kind::kOpen) {
    VARVE_TRY_ASSIGN(const Ino parent, node.writer->parent(node.ino));
    return st_ino_of_open(series, node.slot->number(), parent);
  }
  VARVE_TRY_ASSIGN(const Rank parent, node.reader->parent(node.rank));
  return st_ino_of_sealed(series, node.slot->number(), parent, 0);
}

/// Lists a directory that may change between two reads, for example during rm -rf. It continues
/// after the last name, not at a position. The handle remembers the name of each offset.
Result<void> FrontEnd::list_open(const Node& node, DirHandle& handle, std::uint64_t after,
                                 const AddEntry& add) {
  const std::string last = handle.rewind_to(after);
  return node.writer->list(node.ino, last, [&](std::string_view name, const OpenEntry& entry) {
    if (!add(std::string(name), entry_of(*node.slot, entry), handle.next_offset())) return false;
    handle.remember(name);
    return true;
  });
}

Result<void> FrontEnd::list_sealed(const Node& node, DirHandle& handle, std::uint64_t after,
                                   const AddEntry& add) {
  // A directory opened before its version was sealed has returned offsets of list_open(), so it
  // continues from the name.
  if (handle.next_offset() > kDotEntries + 1 && after > kDotEntries) {
    const std::string last = handle.rewind_to(after);
    return node.reader->list(
        node.rank, 0, [&](std::uint64_t, std::string_view name, const SealedEntry& entry) {
          if (name <= std::string_view(last)) return true;
          if (!add(std::string(name), entry_of(*node.slot, entry), handle.next_offset())) {
            return false;
          }
          handle.remember(name);
          return true;
        });
  }
  handle.rewind_to(0);
  return node.reader->list(
      node.rank, after - kDotEntries,
      [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
        return add(std::string(name), entry_of(*node.slot, entry), position + kDotEntries);
      });
}

Result<void> FrontEnd::take_snapshot(const Node& node, DirHandle& handle) {
  handle.snapshot.clear();
  if (node.kind == Node::Kind::kRoot) {
    VARVE_TRY_ASSIGN(const auto all, repository_.series());
    for (const SeriesInfo& series : all) {
      handle.snapshot.push_back({series.name, st_ino_of_series(series.id), S_IFDIR});
    }
    return {};
  }
  const SeriesId series = node.slot->series().id;
  VARVE_TRY_ASSIGN(const auto all, repository_.versions(series));
  bool any_sealed = false;
  for (const VersionInfo& version : all) {
    const bool sealed = version.state == VersionState::kSealed;
    any_sealed = any_sealed || sealed;
    const std::uint64_t st_ino = sealed ? st_ino_of_sealed(series, version.number, 0, 0)
                                        : st_ino_of_open(series, version.number, kRootIno);
    handle.snapshot.push_back({version.name, st_ino, S_IFDIR});
  }
  if (any_sealed) handle.snapshot.push_back({"latest", st_ino_of_latest(series), S_IFLNK});
  return {};
}

/// Lists the root or a series. Their listings are small, so the handle keeps a snapshot from the
/// first read.
Result<void> FrontEnd::list_upper(const Node& node, DirHandle& handle, std::uint64_t offset,
                                  const AddEntry& add) {
  if (offset == 0) VARVE_TRY(take_snapshot(node, handle));
  const std::uint64_t first = std::max(offset, kDotEntries) - kDotEntries;
  for (std::uint64_t i = first; i < handle.snapshot.size(); ++i) {
    const DirHandle::Name& name = handle.snapshot[i];
    fuse_entry_param entry{};
    entry.attr.st_ino = name.st_ino;
    entry.attr.st_mode = name.type;
    if (!add(name.name, entry, i + 1 + kDotEntries)) break;
  }
  return {};
}

void FrontEnd::fsyncdir(fuse_req_t req, fuse_ino_t ino) {
  const auto node = resolve(ino);
  if (!node || node->kind != Node::Kind::kOpen) {
    // Series and versions are on disk when the request that created them returns.
    fuse_reply_err(req, node ? 0 : report("fsync", node.error()));
    return;
  }
  later(req, [this, req, writer = node->writer] { reply_result(req, writer->sync(), "fsync"); });
}

}  // namespace varve::fs

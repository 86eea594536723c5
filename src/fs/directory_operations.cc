// SPDX-License-Identifier: Apache-2.0
#include "fs/directory_operations.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fs/node_id.h"

namespace varve::fs {
namespace {
constexpr std::uint64_t kDotEntries = 2;  // "." and "..", before all names.
}  // namespace

/// Encodes the entries of a readdir or readdirplus reply.
class DirectoryOperations::Encoder {
 public:
  struct Room {
    char* buffer;
    std::size_t bytes;
  };
  Encoder(fuse_req_t req, const Room& room, bool plus) : req_(req), room_(room), plus_(plus) {}

  /// Adds an entry and the offset after it. Returns false if the entry does not fit. An entry with
  /// node id 0 has only the name, type and st_ino; the kernel looks up the rest when needed.
  bool add(const std::string& name, const fuse_entry_param& entry, std::uint64_t offset) {
    char* place = room_.buffer + used_;
    const std::size_t left = room_.bytes - used_;
    const auto next = static_cast<off_t>(offset);
    const std::size_t bytes =
        plus_ ? fuse_add_direntry_plus(req_, place, left, name.c_str(), &entry, next)
              : fuse_add_direntry(req_, place, left, name.c_str(), &entry.attr, next);
    if (bytes > left) return false;
    used_ += bytes;
    return true;
  }
  /// Adds an entry with node id 0.
  bool add_name(const DirHandle::Name& name, std::uint64_t offset) {
    fuse_entry_param entry{};
    entry.attr.st_ino = name.st_ino;
    entry.attr.st_mode = name.type;
    return add(name.name, entry, offset);
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  fuse_req_t req_;
  const Room room_;
  const bool plus_;
  std::size_t used_ = 0;
};

Result<Reply> DirectoryOperations::opendir(fuse_ino_t ino, const fuse_file_info& info) {
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(ino));
  fuse_file_info opened = info;
  if (node.kind == Node::Kind::kSealed) {
    // A cached listing without the removed names must not outlast the return of the names.
    opened.keep_cache = opened.cache_readdir = parts_.removals.are_accepted() ? 0 : 1;
  }
  opened.fh = parts_.nodes.directories().add(std::make_shared<DirHandle>(ino));
  return Reply(OpenReply{
      opened, [&nodes = parts_.nodes, fh = opened.fh] { nodes.directories().remove(fh); }});
}

Result<Reply> DirectoryOperations::releasedir(const fuse_file_info& info) {
  parts_.nodes.directories().remove(info.fh);
  return Reply(Done{});
}

Result<Reply> DirectoryOperations::readdir(fuse_req_t req, const Page& page,
                                           const fuse_file_info& info) {
  const auto handle = parts_.nodes.directories().get(info.fh);
  if (handle == nullptr) return Reply(Refusal{EBADF});
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(handle->node_id()));
  const std::lock_guard one(handle->mutex);
  auto buffer = parts_.buffers.take();
  Encoder encoder(req,
                  {.buffer = reinterpret_cast<char*>(buffer.data()),
                   .bytes = std::min(page.bytes_max, BufferPool::kBufferBytes)},
                  page.plus);
  const auto done = list(node, *handle, static_cast<std::uint64_t>(page.offset), encoder);
  const bool was_removed =
      node.kind == Node::Kind::kRemoved ||
      (!done && node.kind == Node::Kind::kOpen &&
       (done.error().code() == ErrorCode::kStale || done.error().code() == ErrorCode::kNotFound));
  // A directory removed while open lists nothing.
  if (!done && !was_removed) return done.error();
  return Reply(BufferReply{std::move(buffer), encoder.used()});
}

Result<void> DirectoryOperations::list(const Node& node, DirHandle& handle, std::uint64_t begin,
                                       Encoder& page) {
  if (begin < kDotEntries) {
    VARVE_TRY_ASSIGN(const struct stat self, parts_.attributes.of(node));
    VARVE_TRY_ASSIGN(const std::uint64_t parent, parent_st_ino(node));
    if (begin == 0 && !page.add_name({".", self.st_ino, S_IFDIR}, 1)) return {};
    if (!page.add_name({"..", parent, S_IFDIR}, kDotEntries)) return {};
  }
  const auto after = std::max(begin, kDotEntries);
  switch (node.kind) {
    case Node::Kind::kOpen:
      return list_open(node, handle, after, page);
    case Node::Kind::kSealed:
      return list_sealed(node, handle, after, page);
    case Node::Kind::kLatest:
      return Error(ErrorCode::kNotDirectory, "latest is a symbolic link");
    case Node::Kind::kRemoved:
      return {};
    default:
      return list_upper(node, handle, begin, page);
  }
}

Result<std::uint64_t> DirectoryOperations::parent_st_ino(const Node& node) {
  if (node.kind == Node::Kind::kRoot || node.kind == Node::Kind::kSeries ||
      node.kind == Node::Kind::kRemoved) {
    return kRootStIno;
  }
  const SeriesId series = node.slot->series().id;
  if (node.is_version_root() || node.kind == Node::Kind::kBeside) return st_ino_of_series(series);
  if (node.kind == Node::Kind::kOpen) {
    VARVE_TRY_ASSIGN(const Ino parent, node.writer->parent(node.ino));
    return st_ino_of_open(series, node.slot->number(), parent);
  }
  VARVE_TRY_ASSIGN(const Rank parent, node.reader->parent(node.rank));
  return st_ino_of_sealed(series, node.slot->number(), parent, 0);
}

/// Lists a directory that may change between two reads, for example during rm -rf. The listing
/// continues after the last name, not at a position. The handle remembers the name of each offset.
Result<void> DirectoryOperations::list_open(const Node& node, DirHandle& handle,
                                            std::uint64_t after, Encoder& page) {
  const std::string last = handle.rewind_to(after);
  return node.writer->list(node.ino, last, [&](std::string_view name, const OpenEntry& entry) {
    if (!page.add(std::string(name), parts_.attributes.entry(*node.slot, entry),
                  handle.next_offset())) {
      return false;
    }
    handle.remember(name);
    return true;
  });
}

Result<void> DirectoryOperations::list_sealed(const Node& node, DirHandle& handle,
                                              std::uint64_t after, Encoder& page) {
  // A directory opened before its version was sealed has returned offsets of list_open(), so the
  // listing continues from the name.
  if (handle.next_offset() > kDotEntries + 1 && after > kDotEntries) {
    const std::string last = handle.rewind_to(after);
    return node.reader->list(
        node.rank, 0, [&](std::uint64_t, std::string_view name, const SealedEntry& entry) {
          if (name <= std::string_view(last)) return true;
          if (parts_.removals.hides(*node.slot, entry.rank)) return true;
          if (!page.add(std::string(name), parts_.attributes.entry(*node.slot, entry),
                        handle.next_offset())) {
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
        if (parts_.removals.hides(*node.slot, entry.rank)) return true;
        return page.add(std::string(name), parts_.attributes.entry(*node.slot, entry),
                        position + kDotEntries);
      });
}

/// Lists the root or a series. Listings of both are small, so the handle keeps a snapshot from the
/// first read.
Result<void> DirectoryOperations::list_upper(const Node& node, DirHandle& handle,
                                             std::uint64_t offset, Encoder& page) {
  if (offset == 0) {
    handle.snapshot.clear();
    VARVE_TRY_ASSIGN(handle.snapshot, parts_.versions.list(node));
  }
  const std::uint64_t first = std::max(offset, kDotEntries) - kDotEntries;
  for (std::uint64_t i = first; i < handle.snapshot.size(); ++i) {
    if (!page.add_name(handle.snapshot[i], i + 1 + kDotEntries)) break;
  }
  return {};
}

Result<Reply> DirectoryOperations::fsyncdir(fuse_ino_t ino) {
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(ino));
  // Series, versions and names beside versions are on disk before the creating request returns.
  if (node.kind != Node::Kind::kOpen) return Reply(Done{});
  return Reply(Later{[writer = node.writer] { return done_or(writer->sync()); }});
}

}  // namespace varve::fs

// SPDX-License-Identifier: Apache-2.0
#include "fs/file_operations.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "fs/handles.h"
#include "fs/new_file.h"
#include "fs/node_id.h"

namespace varve::fs {
namespace {

std::optional<AllocateMode> allocate_mode(int mode) {
  switch (mode) {
    case 0:
      return AllocateMode::kExtend;
    case FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kKeepSize;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kPunchHole;
    case FALLOC_FL_ZERO_RANGE:
      return AllocateMode::kZeroRange;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kZeroRangeKeepSize;
    default:
      return std::nullopt;
  }
}

bool opens_for_writing(const fuse_file_info& info) { return (info.flags & O_ACCMODE) != O_RDONLY; }

/// Returns a function that drops a file handle which the kernel did not accept.
std::function<void()> withdrawal(NodeTable& nodes, std::uint64_t fh) {
  return [&nodes, fh] { nodes.files().remove(fh); };
}

}  // namespace

Result<Reply> FileOperations::open(fuse_ino_t ino, const fuse_file_info& info) {
  // All versions are sealed, so the daemon needs no per-open state.
  if (parts_.reads.opens_nothing()) return Reply(Refusal{ENOSYS});
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(ino));
  if (node.kind == Node::Kind::kSealed) return open_sealed(node, ino, info);
  if (node.kind == Node::Kind::kOpen) return open_unsealed(node, info);
  if (node.kind == Node::Kind::kBeside) return open_beside(node, info);
  return Reply(Refusal{EISDIR});
}

Result<Reply> FileOperations::open_sealed(const Node& node, fuse_ino_t ino, fuse_file_info info) {
  if (opens_for_writing(info) || (info.flags & O_TRUNC) != 0) return Reply(Refusal{EROFS});
  VARVE_TRY_ASSIGN(auto reader, node.reader->open(node.rank));
  // Pages cached before the seal may be older than a write that bypassed the kernel's cache.
  info.keep_cache = unpack(ino).open ? 0 : 1;
  info.noflush = 1;
  info.fh =
      parts_.nodes.files().add(std::make_shared<FileHandle>(*node.slot, std::move(reader), ino));
  return Reply(OpenReply{info, withdrawal(parts_.nodes, info.fh)});
}

Result<Reply> FileOperations::open_unsealed(const Node& node, fuse_file_info info) {
  const bool for_writing = opens_for_writing(info);
  VARVE_TRY_ASSIGN(auto file, node.writer->open(node.ino, for_writing));
  if ((info.flags & O_TRUNC) != 0) {
    AttributeChange change;
    change.size = 0;
    VARVE_TRY(node.writer->set_attributes(node.ino, change));
  }
  // Files opened only for writing bypass the page cache; files that may be mapped cannot.
  info.direct_io = (info.flags & O_ACCMODE) == O_WRONLY;
  info.noflush = !for_writing;
  info.fh = parts_.nodes.files().add(
      std::make_shared<FileHandle>(*node.slot, std::move(file), for_writing));
  return Reply(OpenReply{info, withdrawal(parts_.nodes, info.fh)});
}

Result<Reply> FileOperations::open_beside(const Node& node, fuse_file_info info) {
  const bool for_writing = opens_for_writing(info);
  VARVE_TRY_ASSIGN(auto file, node.beside->open(node.ino, for_writing));
  info.direct_io = 1;  // Another mount may change the file.
  info.fh = parts_.nodes.files().add(
      std::make_shared<FileHandle>(*node.slot, std::move(file), for_writing));
  return Reply(OpenReply{info, withdrawal(parts_.nodes, info.fh)});
}

Result<Reply> FileOperations::create_beside(const Node& directory, std::string_view name,
                                            const NewFile& wanted, const fuse_file_info& info) {
  VARVE_TRY_ASSIGN(const fuse_entry_param entry, parts_.beside.create(directory, name, wanted));
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve(entry.ino));
  VARVE_TRY_ASSIGN(const Reply opened, open_beside(node, info));
  const auto& open = std::get<OpenReply>(opened.content);
  return Reply(CreateReply{entry, open.info, open.withdraw});
}

Result<Reply> FileOperations::create(const Caller& caller, fuse_ino_t parent, std::string_view name,
                                     mode_t mode, const fuse_file_info& info) {
  const std::uint32_t type_and_mode = S_IFREG | (mode & 07777);
  const auto seen = parts_.nodes.resolve(parent);
  if (seen && BesideNames::is_place(*seen)) {
    VARVE_TRY_ASSIGN(NewFile file,
                     new_file(caller, parts_.attributes.show(), *seen, type_and_mode));
    return Reply(Later{[this, node = *seen, wanted = std::string(name), file = std::move(file),
                        info] { return create_beside(node, wanted, file, info); }});
  }
  VARVE_TRY_ASSIGN(const Node node, parts_.nodes.resolve_open(parent));
  VARVE_TRY_ASSIGN(const NewFile wanted,
                   new_file(caller, parts_.attributes.show(), node, type_and_mode));
  VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->create(node.ino, name, wanted));
  const bool for_writing = opens_for_writing(info);
  VARVE_TRY_ASSIGN(auto file, node.writer->open(entry.ino, for_writing));
  fuse_file_info opened = info;
  opened.direct_io = (info.flags & O_ACCMODE) == O_WRONLY;
  auto handle = std::make_shared<FileHandle>(*node.slot, std::move(file), for_writing);
  if ((mode & (S_ISUID | S_ISGID)) == 0) handle->set_plain_at(parts_.privileges.count());
  opened.fh = parts_.nodes.files().add(std::move(handle));
  return Reply(CreateReply{parts_.attributes.entry(*node.slot, entry), opened,
                           withdrawal(parts_.nodes, opened.fh)});
}

Result<Reply> FileOperations::write(const Caller& caller, fuse_ino_t ino, std::string_view data,
                                    off_t offset, const fuse_file_info& info) {
  const auto handle = parts_.nodes.files().get(info.fh);
  if (handle == nullptr || !handle->writable()) return Reply(Refusal{EBADF});
  VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
  // Files beside versions have no privileges.
  if (!handle->slot().is_series()) VARVE_TRY(parts_.privileges.drop(caller, ino, *handle));
  VARVE_TRY(content.file->write(static_cast<std::uint64_t>(offset), base::as_bytes(data)));
  return Reply(WriteReply{data.size()});
}

Result<Reply> FileOperations::flush(const fuse_file_info& info) {
  if (parts_.reads.opens_nothing()) return Reply(Refusal{ENOSYS});
  const auto handle = parts_.nodes.files().get(info.fh);
  if (handle == nullptr) return Reply(Refusal{EBADF});
  if (!handle->writable()) return Reply(Done{});
  VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
  if (handle->slot().is_series()) {  // Writes to the disk.
    return Reply(Later{[file = content.file] { return done_or(file->flush()); }});
  }
  return done_or(content.file->flush());
}

Result<Reply> FileOperations::release(const fuse_file_info& info) {
  auto handle = parts_.nodes.files().remove(info.fh);
  const bool was_writer = handle != nullptr && handle->writable() && !handle->slot().is_series();
  handle.reset();
  if (was_writer) parts_.changes.note_closed_writer();
  return Reply(Done{});
}

Result<Reply> FileOperations::fsync(const fuse_file_info& info) {
  auto handle = parts_.nodes.files().get(info.fh);
  if (handle == nullptr && parts_.reads.opens_nothing()) return Reply(Done{});
  if (handle == nullptr) return Reply(Refusal{EBADF});
  return Reply(Later{[handle]() -> Result<Reply> {
    VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
    if (content.file == nullptr) return Reply(Done{});  // A sealed version is already on disk.
    return done_or(content.file->sync());
  }});
}

Result<Reply> FileOperations::fallocate(int mode, const Extent& extent,
                                        const fuse_file_info& info) {
  auto handle = parts_.nodes.files().get(info.fh);
  const auto wanted = allocate_mode(mode);
  // Not ENOSYS: the kernel would never send the request again.
  if (!wanted) return Reply(Refusal{EOPNOTSUPP});
  if (handle == nullptr || !handle->writable()) return Reply(Refusal{EBADF});
  return Reply(Later{[handle, extent, mode = *wanted]() -> Result<Reply> {
    VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
    return done_or(content.file->allocate(static_cast<std::uint64_t>(extent.offset),
                                          static_cast<std::uint64_t>(extent.bytes), mode));
  }});
}

// On the errors EXDEV and EOPNOTSUPP the kernel copies the bytes itself.
Result<Reply> FileOperations::copy_file_range(const Place& source, const Place& target,
                                              std::size_t bytes) {
  auto from = parts_.nodes.files().get(source.info.fh);
  auto to = parts_.nodes.files().get(target.info.fh);
  if (from == nullptr || to == nullptr || !to->writable()) return Reply(Refusal{EBADF});
  return Reply(Later{[from, to, bytes, begin = static_cast<std::uint64_t>(source.offset),
                      place = static_cast<std::uint64_t>(target.offset)]() -> Result<Reply> {
    VARVE_TRY_ASSIGN(const FileHandle::Content read, from->content());
    VARVE_TRY_ASSIGN(const FileHandle::Content written, to->content());
    const bool same_series = from->slot().series().id == to->slot().series().id;
    const bool same_slot = same_series && &from->slot() == &to->slot();
    if (!same_series || (read.reader == nullptr && !same_slot)) {
      return Error(ErrorCode::kOtherVersion, "nothing can be shared");
    }
    VARVE_TRY_ASSIGN(const std::uint64_t copied,
                     read.reader != nullptr
                         ? written.file->clone_range(*read.reader, begin, place, bytes)
                         : written.file->clone_range(*read.file, begin, place, bytes));
    return Reply(WriteReply{copied});
  }});
}

}  // namespace varve::fs

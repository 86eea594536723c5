// SPDX-License-Identifier: Apache-2.0
// Open regular files.
#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "fs/caller.h"
#include "fs/errno_map.h"
#include "fs/front_end.h"
#include "fs/posix_acl.h"

namespace varve::fs {
namespace {

/// Number of reads to pass to the pool after the loop has seen concurrent reads.
constexpr int kReadsToHandOver = 256;

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

/// The parts of a read that a session lends, from its start. `held` owns the bytes.
struct Lent {
  std::vector<SharedBytes> held;
  std::vector<iovec> parts;
  std::size_t bytes = 0;
};

Lent lend(FileReader& reader, std::size_t size, std::uint64_t offset) {
  Lent lent;
  while (lent.bytes < size) {
    SharedBytes next = reader.lend(offset + lent.bytes, size - lent.bytes);
    if (next.bytes.empty()) break;
    // iovec has no const member; nothing writes to these bytes.
    lent.parts.push_back(
        {.iov_base = const_cast<std::byte*>(next.bytes.data()), .iov_len = next.bytes.size()});
    lent.bytes += next.bytes.size();
    lent.held.push_back(std::move(next));
  }
  return lent;
}

}  // namespace

void FrontEnd::open(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& info) {
  if (opens_nothing_) {  // All versions are sealed, so the daemon needs no per-open state.
    fuse_reply_err(req, ENOSYS);
    return;
  }
  const int access = info.flags & O_ACCMODE;
  const bool for_writing = access != O_RDONLY;
  const auto node = resolve(ino);
  if (!node) {
    fuse_reply_err(req, report("open", node.error()));
    return;
  }
  fuse_file_info opened = info;
  std::shared_ptr<FileHandle> handle;
  if (node->kind == Node::Kind::kSealed) {
    if (for_writing || (info.flags & O_TRUNC) != 0) {
      fuse_reply_err(req, EROFS);
      return;
    }
    auto reader = node->reader->open(node->rank);
    if (!reader) {
      fuse_reply_err(req, report("open", reader.error()));
      return;
    }
    // Pages cached before the seal may be older than a write that bypassed the kernel's cache.
    opened.keep_cache = unpack(ino).open ? 0 : 1;
    handle = std::make_shared<FileHandle>(*node->slot, std::move(*reader), ino);
  } else if (node->kind == Node::Kind::kOpen) {
    auto file = node->writer->open(node->ino, for_writing);
    if (file && (info.flags & O_TRUNC) != 0) {
      AttributeChange change;
      change.size = 0;
      const auto done = node->writer->set_attributes(node->ino, change);
      if (!done) file = done.error();
    }
    if (!file) {
      fuse_reply_err(req, report("open", file.error()));
      return;
    }
    // Files opened only for writing bypass the page cache; files that may be mapped cannot.
    opened.direct_io = access == O_WRONLY;
    handle = std::make_shared<FileHandle>(*node->slot, std::move(*file), for_writing);
  } else {
    fuse_reply_err(req, EISDIR);
    return;
  }
  opened.noflush = !for_writing;
  opened.fh = files_.add(std::move(handle));
  if (fuse_reply_open(req, &opened) != 0) files_.remove(opened.fh);
}

/// Returns the file of a request. Opens it now if the kernel does not open files.
Result<std::shared_ptr<FileHandle>> FrontEnd::file_of(fuse_req_t req, fuse_ino_t ino,
                                                      const fuse_file_info& info) {
  if (info.fh != 0 || !opens_nothing_) {
    auto handle = files_.get(info.fh);
    if (handle == nullptr) return Error(ErrorCode::kInvalid, "no such open file", EBADF);
    return handle;
  }
  const pid_t reader = fuse_req_ctx(req)->pid;
  if (auto handle = recent_files_.find(ino, reader)) return handle;
  VARVE_TRY_ASSIGN(const Node node, resolve(ino));
  if (node.kind != Node::Kind::kSealed) {
    return Error(ErrorCode::kIsDirectory, "not a regular file", EISDIR);
  }
  VARVE_TRY_ASSIGN(auto file, node.reader->open(node.rank));
  auto handle = std::make_shared<FileHandle>(*node.slot, std::move(file));
  recent_files_.add(ino, reader, handle);
  return handle;
}

void FrontEnd::read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset,
                    const fuse_file_info& info) {
  const auto file = file_of(req, ino, info);
  if (!file || size > BufferPool::kBufferBytes) {
    fuse_reply_err(req, file ? EINVAL : report("read", file.error()));
    return;
  }
  const auto& handle = *file;
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto content = handle->content();
  if (!content) {
    fuse_reply_err(req, report("read", content.error()));
    return;
  }
  if (content->reader != nullptr) {
    const SharedBytes lent = content->reader->try_lend(begin, size);
    if (!lent.bytes.empty()) {
      fuse_reply_buf(req, reinterpret_cast<const char*>(lent.bytes.data()), lent.bytes.size());
      return;
    }
    const auto buffer = buffers_.take();
    const auto got = content->reader->try_read(begin, std::span(buffer.data(), size));
    if (got) {
      fuse_reply_buf(req, reinterpret_cast<const char*>(buffer.data()), *got);
      return;
    }
  }
  if (content->reader == nullptr) {
    later(req, [this, req, handle, size, begin] { read_into(req, *handle, size, begin); });
  } else if (reads_to_hand_over_.load() > 0) {
    reads_to_hand_over_.fetch_sub(1);
    later(req, *sealed_pool_,
          [this, req, handle, size, begin] { read_into(req, *handle, size, begin); });
  } else {
    // Waking another thread takes longer than many of the reads.
    read_into(req, *handle, size, begin);
  }
}

/// Returns whether the kernel already has another request for the daemon.
bool FrontEnd::is_asked_again() const {
  pollfd device{fuse_session_fd(session_), POLLIN, 0};
  return ::poll(&device, 1, 0) == 1;
}

void FrontEnd::read_into(fuse_req_t req, FileHandle& handle, std::size_t size,
                         std::uint64_t offset) {
  const auto content = handle.content();
  if (!content) {
    fuse_reply_err(req, report("read", content.error()));
    return;
  }
  FileReader* const reader = content->reader.get();
  Lent lent = reader == nullptr ? Lent() : lend(*reader, size, offset);
  const auto buffer = lent.bytes < size ? std::optional(buffers_.take()) : std::nullopt;
  if (buffer) {
    const std::span out(buffer->data(), size - lent.bytes);
    const auto got = reader == nullptr ? content->file->read(offset, out)
                                       : reader->read(offset + lent.bytes, out);
    if (!got) {
      fuse_reply_err(req, report("read", got.error()));
      return;
    }
    lent.parts.push_back({.iov_base = buffer->data(), .iov_len = *got});
  }
  // Checked before the answer, so that a single reader, which waits for each answer, does not
  // count.
  if (reader != nullptr && is_asked_again()) reads_to_hand_over_ = kReadsToHandOver;
  fuse_reply_iov(req, lent.parts.data(), static_cast<int>(lent.parts.size()));
}

/// Clears the file's set-user-ID and set-group-ID bits, unless root writes, and its capabilities.
/// For direct I/O the kernel leaves this to the daemon.
Result<void> FrontEnd::drop_privileges(fuse_req_t req, fuse_ino_t ino, FileHandle& handle) {
  const std::uint64_t given = privileges_given_.load();
  if (handle.plain_at() == given) return {};
  VARVE_TRY_ASSIGN(const Node node, resolve_open(ino));
  VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(node.ino));
  const std::uint32_t mode = entry.attributes.mode;
  std::uint32_t plain = mode & ~static_cast<std::uint32_t>(S_ISUID);
  const bool may_keep_group =
      (mode & S_IXGRP) == 0 &&
      ((mode & S_ISGID) == 0 || is_root_or_in_group(req, entry.attributes.gid));
  if (!may_keep_group) plain &= ~static_cast<std::uint32_t>(S_ISGID);
  const bool keeps_bits = plain != mode && fuse_req_ctx(req)->uid == 0;
  bool told = false;
  if (plain != mode && !keeps_bits) {
    AttributeChange change;
    change.mode = plain & 07777;
    VARVE_TRY(node.writer->set_attributes(node.ino, change));
    told = true;
  }
  VARVE_TRY_ASSIGN(const Xattrs all, node.writer->xattrs(node.ino));
  if (std::ranges::find(all, kCapabilityName, &Xattr::name) != all.end()) {
    VARVE_TRY(node.writer->remove_xattr(node.ino, kCapabilityName));
    told = true;
  }
  if (told) fuse_lowlevel_notify_inval_inode(session_, ino, -1, 0);
  if (!keeps_bits && (plain & S_ISGID) == 0) handle.set_plain_at(given);
  return {};
}

void FrontEnd::write(fuse_req_t req, fuse_ino_t ino, std::string_view data, off_t offset,
                     const fuse_file_info& info) {
  const auto handle = files_.get(info.fh);
  if (handle == nullptr || !handle->writable()) {
    fuse_reply_err(req, EBADF);
    return;
  }
  const auto content = handle->content();
  if (!content) {
    fuse_reply_err(req, report("write", content.error()));
    return;
  }
  auto done = drop_privileges(req, ino, *handle);
  if (done) {
    done = content->file->write(static_cast<std::uint64_t>(offset), base::as_bytes(data));
  }
  if (done) {
    fuse_reply_write(req, data.size());
  } else {
    fuse_reply_err(req, report("write", done.error()));
  }
}

void FrontEnd::flush(fuse_req_t req, const fuse_file_info& info) {
  if (opens_nothing_) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  const auto handle = files_.get(info.fh);
  if (handle == nullptr || !handle->writable()) {
    fuse_reply_err(req, handle == nullptr ? EBADF : 0);
    return;
  }
  const auto content = handle->content();
  reply_result(req, content ? content->file->flush() : content.error(), "close");
}

void FrontEnd::release(fuse_req_t req, const fuse_file_info& info) {
  auto handle = files_.remove(info.fh);
  const bool was_writer = handle != nullptr && handle->writable();
  handle.reset();
  if (was_writer) {
    const std::lock_guard lock(writers_mutex_);
    ++writers_closed_;
    writers_left_.notify_all();
  }
  fuse_reply_err(req, 0);
}

void FrontEnd::fsync(fuse_req_t req, const fuse_file_info& info) {
  auto handle = files_.get(info.fh);
  if (handle == nullptr) {
    fuse_reply_err(req, opens_nothing_ ? 0 : EBADF);
    return;
  }
  later(req, [this, req, handle] {
    const auto content = handle->content();
    if (!content) {
      reply_result(req, content.error(), "fsync");
    } else if (content->file == nullptr) {
      fuse_reply_err(req, 0);  // A sealed version is already on disk.
    } else {
      reply_result(req, content->file->sync(), "fsync");
    }
  });
}

void FrontEnd::lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                     const fuse_file_info& info) {
  const auto file = file_of(req, ino, info);
  if (!file || (whence != SEEK_DATA && whence != SEEK_HOLE)) {
    fuse_reply_err(req, file ? EINVAL : report("lseek", file.error()));
    return;
  }
  const auto& handle = *file;
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto found = [&]() -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
    if (content.reader != nullptr) {
      return whence == SEEK_DATA ? content.reader->seek_data(begin)
                                 : content.reader->seek_hole(begin);
    }
    return whence == SEEK_DATA ? content.file->seek_data(begin) : content.file->seek_hole(begin);
  }();
  if (found) {
    fuse_reply_lseek(req, static_cast<off_t>(*found));
  } else if (found.error().code() == ErrorCode::kNotFound) {
    fuse_reply_err(req, ENXIO);
  } else {
    fuse_reply_err(req, report("lseek", found.error()));
  }
}

void FrontEnd::fallocate(fuse_req_t req, int mode, off_t offset, off_t bytes,
                         const fuse_file_info& info) {
  auto handle = files_.get(info.fh);
  const auto wanted = allocate_mode(mode);
  if (handle == nullptr || !handle->writable() || !wanted) {
    // Not ENOSYS: the kernel would never send the request again.
    fuse_reply_err(req, wanted ? EBADF : EOPNOTSUPP);
    return;
  }
  later(req, [this, req, handle, offset, bytes, mode = *wanted] {
    const auto content = handle->content();
    reply_result(req,
                 content ? content->file->allocate(static_cast<std::uint64_t>(offset),
                                                   static_cast<std::uint64_t>(bytes), mode)
                         : content.error(),
                 "fallocate");
  });
}

void FrontEnd::copy_file_range(fuse_req_t req, off_t source_offset, const fuse_file_info& source,
                               off_t offset, const fuse_file_info& info, std::size_t bytes) {
  auto from = files_.get(source.fh);
  auto to = files_.get(info.fh);
  if (from == nullptr || to == nullptr || !to->writable()) {
    fuse_reply_err(req, EBADF);
    return;
  }
  later(req, [req, from, to, source_offset, offset, bytes] {
    const auto copied = [&]() -> Result<std::uint64_t> {
      VARVE_TRY_ASSIGN(const FileHandle::Content read, from->content());
      VARVE_TRY_ASSIGN(const FileHandle::Content written, to->content());
      const auto begin = static_cast<std::uint64_t>(source_offset);
      const auto place = static_cast<std::uint64_t>(offset);
      const bool same_series = from->slot().series().id == to->slot().series().id;
      if (same_series && read.reader != nullptr) {
        return written.file->clone_range(*read.reader, begin, place, bytes);
      }
      if (same_series && &from->slot() == &to->slot()) {
        return written.file->clone_range(*read.file, begin, place, bytes);
      }
      return Error(ErrorCode::kOtherVersion, "nothing can be shared");
    }();
    if (copied) {
      fuse_reply_write(req, *copied);
    } else {
      // On EXDEV and EOPNOTSUPP the kernel copies the bytes.
      fuse_reply_err(req, report("copy_file_range", copied.error()));
    }
  });
}

}  // namespace varve::fs

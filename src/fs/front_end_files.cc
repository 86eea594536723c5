// SPDX-License-Identifier: Apache-2.0
// Open regular files.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/coding.h"
#include "fs/errno_map.h"
#include "fs/front_end.h"

namespace varve::fs {

void FrontEnd::open(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& info) {
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
    opened.keep_cache = 1;
    handle = std::make_shared<FileHandle>(*node->slot, std::move(*reader));
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
    // Bytes that are only written skip the page cache; a file that may be mapped cannot.
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

void FrontEnd::read(fuse_req_t req, std::size_t size, off_t offset, const fuse_file_info& info) {
  const auto handle = files_.get(info.fh);
  if (handle == nullptr || size > BufferPool::kBufferBytes) {
    fuse_reply_err(req, handle == nullptr ? EBADF : EINVAL);
    return;
  }
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto content = handle->content();
  if (!content) {
    fuse_reply_err(req, report("read", content.error()));
    return;
  }
  if (content->reader != nullptr) {
    const auto buffer = buffers_.take();
    const auto got = content->reader->try_read(begin, std::span(buffer.data(), size));
    if (got) {
      fuse_reply_buf(req, reinterpret_cast<const char*>(buffer.data()), *got);
      return;
    }
  }
  later(req, [this, req, handle, size, begin] { read_into(req, *handle, size, begin); });
}

void FrontEnd::read_into(fuse_req_t req, FileHandle& handle, std::size_t size,
                         std::uint64_t offset) {
  const auto buffer = buffers_.take();
  const std::span out(buffer.data(), size);
  const auto got = [&]() -> Result<std::size_t> {
    VARVE_TRY_ASSIGN(const FileHandle::Content content, handle.content());
    return content.reader != nullptr ? content.reader->read(offset, out)
                                     : content.file->read(offset, out);
  }();
  if (got) {
    fuse_reply_buf(req, reinterpret_cast<const char*>(buffer.data()), *got);
  } else {
    fuse_reply_err(req, report("read", got.error()));
  }
}

void FrontEnd::write(fuse_req_t req, std::string_view data, off_t offset,
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
  const auto done = content->file->write(static_cast<std::uint64_t>(offset), base::as_bytes(data));
  if (done) {
    fuse_reply_write(req, data.size());
  } else {
    fuse_reply_err(req, report("write", done.error()));
  }
}

void FrontEnd::flush(fuse_req_t req, const fuse_file_info& info) {
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
    fuse_reply_err(req, EBADF);
    return;
  }
  later(req, [this, req, handle] {
    const auto content = handle->content();
    if (!content) {
      reply_result(req, content.error(), "fsync");
    } else if (content->file == nullptr) {
      fuse_reply_err(req, 0);  // A sealed version is on disk already.
    } else {
      reply_result(req, content->file->sync(), "fsync");
    }
  });
}

void FrontEnd::lseek(fuse_req_t req, off_t offset, int whence, const fuse_file_info& info) {
  const auto handle = files_.get(info.fh);
  if (handle == nullptr || (whence != SEEK_DATA && whence != SEEK_HOLE)) {
    fuse_reply_err(req, handle == nullptr ? EBADF : EINVAL);
    return;
  }
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

}  // namespace varve::fs

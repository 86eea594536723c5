// SPDX-License-Identifier: Apache-2.0
#include "fs/read_operations.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

namespace varve::fs {
namespace {

/// Number of reads to pass to the pool after the loop has seen concurrent reads.
constexpr int kReadsToHandOver = 256;

/// Collects the parts that a file lends, from the start of the range. Returns their size.
std::size_t lend(FileLender& lender, const ReadOperations::Range& range, GatheredReply& reply) {
  std::size_t bytes = 0;
  while (bytes < range.bytes) {
    SharedBytes next = lender.lend(range.offset + bytes, range.bytes - bytes);
    if (next.bytes.empty()) break;
    // iovec has no const member; nothing writes to these bytes.
    reply.parts.push_back(
        {.iov_base = const_cast<std::byte*>(next.bytes.data()), .iov_len = next.bytes.size()});
    bytes += next.bytes.size();
    reply.lent.push_back(std::move(next));
  }
  return bytes;
}

}  // namespace

/// Returns the file of a request. Opens it now if the kernel does not open files.
Result<std::shared_ptr<FileHandle>> ReadOperations::file_of(const Caller& caller, fuse_ino_t ino,
                                                            const fuse_file_info& info) {
  if (info.fh != 0 || !opens_nothing_) {
    auto handle = nodes_.files().get(info.fh);
    if (handle == nullptr) return Error(ErrorCode::kBadHandle, "no such open file");
    return handle;
  }
  const pid_t reader = caller.pid();
  if (auto handle = recent_files_.find(ino, reader)) return handle;
  VARVE_TRY_ASSIGN(const Node node, nodes_.resolve(ino));
  if (node.kind != Node::Kind::kSealed) {
    return Error(ErrorCode::kIsDirectory, "not a regular file");
  }
  VARVE_TRY_ASSIGN(auto file, node.reader->open(node.rank));
  auto handle = std::make_shared<FileHandle>(*node.slot, std::move(file));
  recent_files_.add(ino, reader, handle);
  return handle;
}

Result<Reply> ReadOperations::read(const Caller& caller, fuse_ino_t ino, const Range& range,
                                   const fuse_file_info& info) {
  VARVE_TRY_ASSIGN(const auto handle, file_of(caller, ino, info));
  if (range.bytes > BufferPool::kBufferBytes) return Reply(Refusal{EINVAL});
  VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
  const auto read_later = [&](Workers workers) {
    return Reply(Later{[this, handle, range] { return read_waiting(*handle, range); }, workers});
  };
  if (content.reader == nullptr) return read_later(Workers::kGeneral);
  if (content.lender != nullptr) {
    if (auto reply = read_from_memory(*content.lender, range)) return std::move(*reply);
  }
  if (reads_to_hand_over_.load() > 0) {
    reads_to_hand_over_.fetch_sub(1);
    return read_later(Workers::kSealed);
  }
  // Waking another thread takes longer than many of the reads.
  return read_waiting(*handle, range);
}

/// Reads without waiting; nullopt if that is not possible.
std::optional<Reply> ReadOperations::read_from_memory(FileLender& lender, const Range& range) {
  SharedBytes lent = lender.try_lend(range.offset, range.bytes);
  if (!lent.bytes.empty()) return Reply(LentReply{std::move(lent)});
  auto buffer = buffers_.take();
  const auto got = lender.try_read(range.offset, std::span(buffer.data(), range.bytes));
  if (!got) return std::nullopt;
  return Reply(BufferReply{std::move(buffer), *got});
}

/// Reads and waits for the disk if necessary.
Result<Reply> ReadOperations::read_waiting(FileHandle& handle, const Range& range) {
  VARVE_TRY_ASSIGN(const FileHandle::Content content, handle.content());
  FileReader* const reader = content.reader.get();
  GatheredReply reply;
  const std::size_t lent = content.lender == nullptr ? 0 : lend(*content.lender, range, reply);
  if (lent < range.bytes) {
    reply.buffer.emplace(buffers_.take());
    const std::span out(reply.buffer->data(), range.bytes - lent);
    VARVE_TRY_ASSIGN(const std::size_t got, reader == nullptr
                                                ? content.file->read(range.offset, out)
                                                : reader->read(range.offset + lent, out));
    reply.parts.push_back({.iov_base = reply.buffer->data(), .iov_len = got});
  }
  // Checked before the reply, so that a single reader, which waits for each reply, does not count.
  if (reader != nullptr && kernel_.has_more_requests()) reads_to_hand_over_ = kReadsToHandOver;
  return Reply(std::move(reply));
}

Result<Reply> ReadOperations::lseek(const Caller& caller, fuse_ino_t ino, off_t offset, int whence,
                                    const fuse_file_info& info) {
  VARVE_TRY_ASSIGN(const auto handle, file_of(caller, ino, info));
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return Reply(Refusal{EINVAL});
  const auto begin = static_cast<std::uint64_t>(offset);
  const auto found = [&]() -> Result<std::uint64_t> {
    VARVE_TRY_ASSIGN(const FileHandle::Content content, handle->content());
    if (content.reader != nullptr) {
      return whence == SEEK_DATA ? content.reader->seek_data(begin)
                                 : content.reader->seek_hole(begin);
    }
    return whence == SEEK_DATA ? content.file->seek_data(begin) : content.file->seek_hole(begin);
  }();
  if (!found) return found.error();
  return Reply(OffsetReply{static_cast<off_t>(*found)});
}

}  // namespace varve::fs

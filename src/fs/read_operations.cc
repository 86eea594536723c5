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

/// Takes a buffer from the pool on demand.
class BufferOnDemand {
 public:
  explicit BufferOnDemand(BufferPool& pool) : pool_(pool) {}
  /// Returns the function for ReadRequest::memory. Lifetime: until the BufferOnDemand is destroyed.
  [[nodiscard]] auto memory() {
    return [this](std::size_t bytes) { return std::span(take().data(), bytes); };
  }
  /// Returns the buffer, for the reply.
  BufferPool::Lease& take() { return lease_ ? *lease_ : lease_.emplace(pool_.take()); }

 private:
  BufferPool& pool_;
  std::optional<BufferPool::Lease> lease_;
};

/// Reads a range of a sealed file: lent parts first, then a copy of the rest.
Result<GatheredReply> gather(FileReader& reader, const ReadOperations::Range& range,
                             BufferPool& buffers) {
  GatheredReply reply;
  BufferOnDemand buffer(buffers);
  for (std::size_t done = 0; done < range.bytes;) {
    VARVE_TRY_ASSIGN(ReadBytes got, reader.read_as({.offset = range.offset + done,
                                                    .bytes = range.bytes - done,
                                                    .memory = buffer.memory(),
                                                    .may_lend = true}));
    if (!got.is_lent()) {
      reply.buffer.emplace(std::move(buffer.take()));
      reply.parts.push_back({.iov_base = reply.buffer->data(), .iov_len = got.copied.value_or(0)});
      break;
    }
    // iovec has no const member; nothing writes to the bytes.
    reply.parts.push_back({.iov_base = const_cast<std::byte*>(got.lent.bytes.data()),
                           .iov_len = got.lent.bytes.size()});
    done += got.lent.bytes.size();
    reply.lent.push_back(std::move(got.lent));
  }
  return reply;
}

}  // namespace

/// Returns the file of a request. Opens it now if the kernel does not open files. Another process
/// may change files beside versions, so files beside versions are opened for each request.
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
  if (node.kind == Node::Kind::kBeside) {
    VARVE_TRY_ASSIGN(auto file, node.beside->open(node.ino, false));
    return std::make_shared<FileHandle>(*node.slot, std::move(file), false);
  }
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
  VARVE_TRY_ASSIGN(auto reply, read_from_memory(*content.reader, range));
  if (reply) return std::move(*reply);
  if (reads_to_hand_over_.load() > 0) {
    reads_to_hand_over_.fetch_sub(1);
    return read_later(Workers::kSealed);
  }
  // Waking another thread takes longer than many of the reads.
  return read_waiting(*handle, range);
}

/// Reads without waiting; nullopt if the read would wait.
Result<std::optional<Reply>> ReadOperations::read_from_memory(FileReader& reader,
                                                              const Range& range) {
  BufferOnDemand buffer(buffers_);
  VARVE_TRY_ASSIGN(ReadBytes got, reader.read_as({.offset = range.offset,
                                                  .bytes = range.bytes,
                                                  .memory = buffer.memory(),
                                                  .may_wait = false,
                                                  .may_lend = true}));
  if (got.is_refused()) return std::optional<Reply>();
  if (got.is_lent()) return std::optional(Reply(LentReply{std::move(got.lent)}));
  return std::optional(Reply(BufferReply{std::move(buffer.take()), *got.copied}));
}

/// Reads and waits for the disk if necessary.
Result<Reply> ReadOperations::read_waiting(FileHandle& handle, const Range& range) {
  VARVE_TRY_ASSIGN(const FileHandle::Content content, handle.content());
  if (content.reader == nullptr) {
    auto buffer = buffers_.take();
    VARVE_TRY_ASSIGN(const std::size_t got,
                     content.file->read(range.offset, std::span(buffer.data(), range.bytes)));
    return Reply(BufferReply{std::move(buffer), got});
  }
  VARVE_TRY_ASSIGN(auto reply, gather(*content.reader, range, buffers_));
  // Checked before the reply: a single reader waits for each reply, and must not count.
  if (kernel_.has_more_requests()) reads_to_hand_over_ = kReadsToHandOver;
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

// SPDX-License-Identifier: Apache-2.0
// The replies to the kernel's requests.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fs/buffer_pool.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::fs {

struct Reply;

/// Success without a value.
struct Done {};
/// An errno prescribed by POSIX or the FUSE protocol for the request. Nothing is logged.
struct Refusal {
  int errno_value;
};
/// The end of a request without a reply.
struct NoReply {};
/// A name's node. Node id 0 means a name that does not exist; the kernel may cache the absence.
struct EntryReply {
  fuse_entry_param entry;
};
struct AttributeReply {
  struct stat attributes;
  double timeout_s;  ///< How long the kernel may cache the attributes.
};
struct OpenReply {
  fuse_file_info info;
  std::function<void()> withdraw;  ///< Called if the kernel no longer wants the handle.
};
struct CreateReply {
  fuse_entry_param entry;
  fuse_file_info info;
  std::function<void()> withdraw;  ///< Called if the kernel no longer wants the handle.
};
/// The target of a symbolic link.
struct LinkReply {
  std::string target;
};
/// Bytes lent by a reader, sent without a copy.
struct LentReply {
  SharedBytes data;
};
/// The first `bytes` of a buffer.
struct BufferReply {
  BufferPool::Lease buffer;
  std::size_t bytes;
};
/// Lent bytes and then bytes of a buffer, sent without a copy.
struct GatheredReply {
  std::vector<iovec> parts;                 ///< Parts of `lent` and `buffer`.
  std::vector<SharedBytes> lent;            ///< Owners of the lent parts.
  std::optional<BufferPool::Lease> buffer;  ///< Owner of the last part.
};
/// The value of an extended attribute, or a list of names.
struct ValueReply {
  std::string value;
};
/// The size of an extended attribute, or of a list of names.
struct ValueSizeReply {
  std::size_t bytes;
};
/// The number of bytes written.
struct WriteReply {
  std::size_t bytes;
};
/// The result of lseek(2).
struct OffsetReply {
  off_t offset;
};
/// The value returned by an ioctl(2) in its argument.
struct IoctlReply {
  std::string value;
};
struct SpaceReply {
  struct statvfs values;
};

/// The threads for requests outside the loop. Requests to sealed versions have separate threads,
/// and so never wait behind requests waiting for a writer.
enum class Workers { kGeneral, kSealed };

/// The rest of a request that waits for the disk. A worker runs `work` and sends the result as the
/// reply.
struct Later {
  std::function<Result<Reply>()> work;
  Workers workers = Workers::kGeneral;
};

/// The outcome of a request, with all memory used by the message to the kernel.
struct Reply {
  using Content =
      std::variant<Done, Refusal, NoReply, EntryReply, AttributeReply, OpenReply, CreateReply,
                   LinkReply, LentReply, BufferReply, GatheredReply, ValueReply, ValueSizeReply,
                   WriteReply, OffsetReply, SpaceReply, IoctlReply, Later>;

  template <typename Kind>
  requires std::constructible_from<Content, Kind> &&
      (!std::same_as<Kind, Reply>)Reply(Kind kind)  // NOLINT(*-explicit-*)
      : content(std::move(kind)) {}

  Content content;
};

/// Returns Done, or the error.
[[nodiscard]] Result<Reply> done_or(Result<void> result);
/// Returns the entry, or the error.
[[nodiscard]] Result<Reply> entry_or(Result<fuse_entry_param> entry);
/// Returns `value`, the size of `value` if the caller has no room for a value (`room` is 0), or
/// ERANGE if the value does not fit.
[[nodiscard]] Reply value_reply(std::string value, std::size_t room);

/// Returns whether send_reply() replies with an errno.
[[nodiscard]] bool is_errno(const Result<Reply>& result);
/// Sends the result of an operation to the kernel. No other function replies. An error is logged
/// with the operation's name and becomes an errno. The result must not be Later.
void send_reply(fuse_req_t req, const char* operation, const Result<Reply>& result);

}  // namespace varve::fs

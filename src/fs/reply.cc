// SPDX-License-Identifier: Apache-2.0
#include "fs/reply.h"

#include <cerrno>

#include "base/assert.h"
#include "fs/errno_map.h"

namespace varve::fs {
namespace {

/// Sends each kind of reply with the function of libfuse for the kind.
class Sender {
 public:
  explicit Sender(fuse_req_t req) : req_(req) {}

  void operator()(const Done&) const { fuse_reply_err(req_, 0); }
  void operator()(const Refusal& reply) const { fuse_reply_err(req_, reply.errno_value); }
  void operator()(const NoReply&) const { fuse_reply_none(req_); }
  void operator()(const EntryReply& reply) const { fuse_reply_entry(req_, &reply.entry); }
  void operator()(const AttributeReply& reply) const {
    fuse_reply_attr(req_, &reply.attributes, reply.timeout_s);
  }
  void operator()(const OpenReply& reply) const {
    if (fuse_reply_open(req_, &reply.info) != 0) reply.withdraw();
  }
  void operator()(const CreateReply& reply) const {
    if (fuse_reply_create(req_, &reply.entry, &reply.info) != 0) reply.withdraw();
  }
  void operator()(const LinkReply& reply) const { fuse_reply_readlink(req_, reply.target.c_str()); }
  void operator()(const LentReply& reply) const {
    fuse_reply_buf(req_, reinterpret_cast<const char*>(reply.data.bytes.data()),
                   reply.data.bytes.size());
  }
  void operator()(const BufferReply& reply) const {
    fuse_reply_buf(req_, reinterpret_cast<const char*>(reply.buffer.data()), reply.bytes);
  }
  void operator()(const GatheredReply& reply) const {
    fuse_reply_iov(req_, reply.parts.data(), static_cast<int>(reply.parts.size()));
  }
  void operator()(const ValueReply& reply) const {
    fuse_reply_buf(req_, reply.value.data(), reply.value.size());
  }
  void operator()(const ValueSizeReply& reply) const { fuse_reply_xattr(req_, reply.bytes); }
  void operator()(const WriteReply& reply) const { fuse_reply_write(req_, reply.bytes); }
  void operator()(const OffsetReply& reply) const { fuse_reply_lseek(req_, reply.offset); }
  void operator()(const SpaceReply& reply) const { fuse_reply_statfs(req_, &reply.values); }
  void operator()(const IoctlReply& reply) const {
    fuse_reply_ioctl(req_, 0, reply.value.data(), reply.value.size());
  }
  void operator()(const Later&) const { VARVE_ASSERT(false); }

 private:
  fuse_req_t req_;
};

}  // namespace

Result<Reply> done_or(Result<void> result) {
  if (!result) return std::move(result).error();
  return Reply(Done{});
}

Result<Reply> entry_or(Result<fuse_entry_param> entry) {
  if (!entry) return std::move(entry).error();
  return Reply(EntryReply{*entry});
}

Reply value_reply(std::string value, std::size_t room) {
  if (room == 0) return ValueSizeReply{value.size()};
  if (value.size() > room) return Refusal{ERANGE};
  return ValueReply{std::move(value)};
}

bool is_errno(const Result<Reply>& result) {
  return !result || std::holds_alternative<Refusal>(result->content);
}

void send_reply(fuse_req_t req, const char* operation, const Result<Reply>& result) {
  const Sender send(req);
  if (result) {
    std::visit(send, result->content);
  } else {
    send(Refusal{report(operation, result.error())});
  }
}

}  // namespace varve::fs

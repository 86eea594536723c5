// SPDX-License-Identifier: Apache-2.0
#include "copy/change_codec.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace varve::copy {
namespace {

constexpr std::uint32_t kNanosecondsEnd = 1'000'000'000;
constexpr std::size_t kXattrsMax = 65536;

bool has_attributes(ChangeKind kind) {
  return kind == ChangeKind::kMake || kind == ChangeKind::kAttributes;
}

bool is_file_type(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFBLK:
    case S_IFCHR:
    case S_IFIFO:
    case S_IFSOCK:
      return mode <= 0177777;
    default:
      return false;
  }
}

std::uint32_t decode_u32(base::ByteReader& in) {
  const std::uint64_t value = in.varint();
  if (value > UINT32_MAX) in.fail();
  return static_cast<std::uint32_t>(value);
}

void encode_xattrs(base::ByteWriter& out, const Xattrs& xattrs) {
  out.varint(xattrs.size());
  for (const Xattr& xattr : xattrs) {
    out.sized_text(xattr.name);
    out.sized_text(xattr.value);
  }
}

Xattrs decode_xattrs(MessageReader& in) {
  Xattrs xattrs;
  std::size_t bytes = 0;
  const std::uint64_t count = in.varint();
  if (count > kXattrsMax) in.fail();
  in.reserve(xattrs, count, 2);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    Xattr xattr{in.owned_text(kNameBytesMax), in.owned_text(kXattrValueBytesMax)};
    bytes += xattr.name.size() + xattr.value.size();
    const bool ascends = xattrs.empty() || xattrs.back().name < xattr.name;
    if (xattr.name.empty() || !ascends || bytes > kXattrTotalBytesMax) in.fail();
    xattrs.push_back(std::move(xattr));
  }
  return xattrs;
}

void encode_change(base::ByteWriter& out, const Change& change) {
  out.u8(static_cast<std::uint8_t>(change.kind));
  if (change.kind == ChangeKind::kLeave) return;
  out.sized_text(change.name);
  if (has_attributes(change.kind)) {
    out.varint(change.mode);
    out.varint(change.uid);
    out.varint(change.gid);
    out.varint(change.rdev);
    encode_time(out, change.mtime);
  }
  switch (change.kind) {
    case ChangeKind::kMake:
    case ChangeKind::kLink:
      out.sized_text(change.target);
      break;
    case ChangeKind::kAttributes:
      out.varint(change.size);
      encode_xattrs(out, change.xattrs);
      break;
    case ChangeKind::kHole:
      out.varint(change.offset);
      out.varint(change.bytes);
      break;
    case ChangeKind::kData:
      out.varint(change.offset);
      out.varint(change.chunks.size());
      for (const ChunkRef& chunk : change.chunks) {
        out.varint(chunk.bytes);
        out.bytes(chunk.fingerprint);
      }
      break;
    default:
      break;
  }
}

/// Sums over a batch.
struct BatchSize {
  std::size_t data = 0;
  std::size_t chunks = 0;
};

void decode_chunks(MessageReader& in, Change& change, BatchSize& size) {
  change.offset = in.varint();
  const std::uint64_t count = in.varint();
  if (count == 0 || count > kBatchChunksMax - size.chunks) return in.fail();
  size.chunks += count;
  in.reserve(change.chunks, count, sizeof(Fingerprint) + 1);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    ChunkRef chunk;
    chunk.bytes = decode_u32(in);
    const auto fingerprint = in.bytes(chunk.fingerprint.size());
    if (chunk.bytes == 0 || chunk.bytes > kChunkBytesMax || !in.ok()) return in.fail();
    std::ranges::copy(fingerprint, chunk.fingerprint.begin());
    size.data += chunk.bytes;
    if (size.data > kBatchDataMax) return in.fail();
    change.chunks.push_back(chunk);
  }
}

Change decode_change(MessageReader& in, BatchSize& size) {
  Change change;
  change.kind = static_cast<ChangeKind>(in.u8());
  if (change.kind == ChangeKind::kLeave) return change;
  change.name = in.owned_text(kNameBytesMax);
  if (change.name.empty() && change.kind != ChangeKind::kAttributes) in.fail();
  if (has_attributes(change.kind)) {
    change.mode = decode_u32(in);
    change.uid = decode_u32(in);
    change.gid = decode_u32(in);
    change.rdev = in.varint();
    change.mtime = decode_time(in);
    if (!is_file_type(change.mode)) in.fail();
  }
  switch (change.kind) {
    case ChangeKind::kEnter:
    case ChangeKind::kRemove:
      break;
    case ChangeKind::kMake:
      change.target = in.owned_text(kSymlinkBytesMax);
      break;
    case ChangeKind::kLink:
      change.target = in.owned_text(kLinkPathBytesMax);
      break;
    case ChangeKind::kAttributes:
      change.size = in.varint();
      change.xattrs = decode_xattrs(in);
      break;
    case ChangeKind::kHole:
      change.offset = in.varint();
      change.bytes = in.varint();
      if (change.bytes == 0 || change.offset + change.bytes < change.offset) in.fail();
      break;
    case ChangeKind::kData:
      decode_chunks(in, change, size);
      break;
    default:
      in.fail();
  }
  return change;
}

}  // namespace

void encode_time(base::ByteWriter& out, const Timestamp& time) {
  out.svarint(time.seconds);
  out.varint(time.nanoseconds);
}

Timestamp decode_time(base::ByteReader& in) {
  Timestamp time;
  time.seconds = in.svarint();
  time.nanoseconds = decode_u32(in);
  if (time.nanoseconds >= kNanosecondsEnd) in.fail();
  return time;
}

void encode_batch(base::ByteWriter& out, const ChangeBatch& batch) {
  out.varint(batch.changes.size());
  for (const Change& change : batch.changes) encode_change(out, change);
}

ChangeBatch decode_batch(MessageReader& in) {
  ChangeBatch batch;
  const std::uint64_t count = in.varint();
  if (count > kBatchChangesMax) in.fail();
  in.reserve(batch.changes, count, 1);
  BatchSize size;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    batch.changes.push_back(decode_change(in, size));
  }
  return batch;
}

}  // namespace varve::copy

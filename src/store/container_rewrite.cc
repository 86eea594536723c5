// SPDX-License-Identifier: Apache-2.0
#include "store/container_rewrite.h"

#include <algorithm>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/container.h"

namespace varve::store {
namespace {

// Verifies the container at the start of `bytes` and returns its length.
Result<std::uint32_t> verified_length(const format::FrameCodec& codec,
                                      std::span<const std::byte> bytes) {
  if (bytes.size() < format::kContainerFixedHeaderBytes) {
    return Error(ErrorCode::kCorrupt, "a container is cut off");
  }
  VARVE_TRY_ASSIGN(const auto header_bytes,
                   format::container_header_length(bytes.first(format::kContainerFixedHeaderBytes),
                                                   codec.keys()));
  if (header_bytes > bytes.size()) return Error(ErrorCode::kCorrupt, "a container is cut off");
  VARVE_TRY_ASSIGN(const auto header,
                   format::decode_container_header(bytes.first(header_bytes), codec.keys()));
  if (header.stored_bytes() > bytes.size()) {
    return Error(ErrorCode::kCorrupt, "a container is cut off");
  }
  std::vector<std::byte> raw;
  for (std::uint32_t i = 0; i < header.frames.size(); ++i) {
    const auto& frame = header.frames[i];
    raw.resize(frame.raw_bytes);
    VARVE_TRY(format::decode_frame(codec, header, i,
                                   bytes.subspan(header.header_bytes + format::extent_begin(frame),
                                                 format::extent_bytes(frame)),
                                   raw));
  }
  return header.stored_bytes();
}

}  // namespace

Result<void> rewrite_containers(SegmentStore& store, const format::FrameCodec& codec,
                                SegmentNumber segment, std::uint64_t bytes) {
  VARVE_TRY_ASSIGN(const auto from,
                   store.open(segment, is_volume(segment) ? ReadMode::kCached : ReadMode::kDirect));
  base::AlignedBuffer buffer(format::kContainerBytesMax);
  for (std::uint64_t at = 0; at < bytes;) {
    const auto wanted = buffer.span().first(std::min<std::uint64_t>(buffer.size(), bytes - at));
    VARVE_TRY_ASSIGN(const auto got, from->read_at(at, wanted));
    const auto length = verified_length(codec, wanted.first(got));
    if (!length) {
      return Error(ErrorCode::kCorrupt, store.describe(segment) + " has lost the data at offset " +
                                            std::to_string(at) +
                                            " when the disk failed: " + length.error().message());
    }
    VARVE_TRY(store.write_again(segment, at, wanted.first(*length)));
    at += *length;
  }
  return {};
}

}  // namespace varve::store

// SPDX-License-Identifier: Apache-2.0
#include "format/raw_frame.h"

#include "base/checksum.h"

namespace varve::format {

Result<void> verify_plain_frame(const FrameEntry& frame, std::span<const std::byte> stored) {
  if (stored.size() != frame.stored_bytes) {
    return Error(ErrorCode::kCorrupt, "frame: its stored bytes are cut short");
  }
  if (base::checksum64(stored) != frame.checksum) {
    return Error(ErrorCode::kCorrupt, "frame: its stored bytes do not match their checksum");
  }
  return {};
}

bool is_raw_frame(const ContainerHeader& header, const FrameEntry& frame) {
  return !header.seal && frame.codec == Codec::kNone && frame.stored_bytes == frame.raw_bytes;
}

}  // namespace varve::format

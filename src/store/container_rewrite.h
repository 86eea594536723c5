// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "format/frame_codec.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::store {

/// Reads the containers in the first `bytes` of a file, verifies them, and writes each one again to
/// its place. Used after a failed sync: Linux drops the pages that it could not write, and the next
/// sync reports success. Writes only whole containers that it has verified.
/// Errors: kCorrupt if a container is not in the file any more.
[[nodiscard]] Result<void> rewrite_containers(SegmentStore& store, const format::FrameCodec& codec,
                                              SegmentNumber segment, std::uint64_t bytes);

}  // namespace varve::store

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "format/frame_codec.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::store {

/// Reads the containers in the first `bytes` of a file, verifies the containers, and writes each
/// container again to the same place. Used after a failed sync: Linux drops the pages that could
/// not be written, and the next sync reports success. Writes only whole, verified containers.
/// Errors: kCorrupt if a container is not in the file any more.
[[nodiscard]] Result<void> rewrite_containers(SegmentStore& store, const format::FrameCodec& codec,
                                              SegmentNumber segment, std::uint64_t bytes);

}  // namespace varve::store

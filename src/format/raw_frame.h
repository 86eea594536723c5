// SPDX-License-Identifier: Apache-2.0
// Frames stored as raw bytes.
#pragma once

#include <cstddef>
#include <span>

#include "format/container.h"
#include "varve/result.h"

namespace varve::format {

/// Verifies the stored bytes of a frame of a plain container.
/// Errors: kCorrupt if the bytes are damaged.
[[nodiscard]] Result<void> verify_plain_frame(const FrameEntry& frame,
                                              std::span<const std::byte> stored);

/// Returns whether the stored bytes of a container's frame are the raw bytes. A reader then needs
/// no copy of the verified stored bytes.
[[nodiscard]] bool is_raw_frame(const ContainerHeader& header, const FrameEntry& frame);

}  // namespace varve::format

// SPDX-License-Identifier: Apache-2.0
// Corrects one wrong byte in a container's head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "io/file_system.h"
#include "store/segment_files.h"
#include "varve/result.h"

namespace varve::maintain {

/// A byte of a file, and what it must be.
struct HeadFix {
  std::uint64_t offset = 0;  ///< In the file.
  std::byte value{};
};

/// Tries all values of all bytes of the head, up to a few seconds' work a head: a head's checksums
/// tell the right one. nullopt if more than one byte is wrong. `series_directory`: where the
/// container's file is.
[[nodiscard]] Result<std::optional<HeadFix>> find_head_fix(io::FileSystem& files,
                                                           const std::string& series_directory,
                                                           SeriesId series,
                                                           const store::ContainerRecord& record);

}  // namespace varve::maintain

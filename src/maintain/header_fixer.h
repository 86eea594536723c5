// SPDX-License-Identifier: Apache-2.0
// Corrects one wrong byte in a container's header.
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
struct HeaderFix {
  std::uint64_t offset = 0;  ///< In the file.
  std::byte value{};
};

/// Tries all values of all bytes of the header, up to a few seconds' work a header: a header's
/// checksums tell the right one. nullopt if more than one byte is wrong. `series_directory`: where
/// the container's file is.
[[nodiscard]] Result<std::optional<HeaderFix>> find_header_fix(
    io::FileSystem& files, const std::string& series_directory, SeriesId series,
    const store::ContainerRecord& record);

}  // namespace varve::maintain

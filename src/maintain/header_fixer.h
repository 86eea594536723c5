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

/// A byte of a file with its correct value.
struct HeaderFix {
  std::uint64_t offset = 0;  ///< Offset in the file.
  std::byte value{};
};

/// Finds a header's single wrong byte: tries all values of all bytes until the header's checksums
/// match. This takes up to a few seconds. Returns nullopt if more than one byte is wrong.
/// `series_directory`: folder of the series with the container's file.
[[nodiscard]] Result<std::optional<HeaderFix>> find_header_fix(
    io::FileSystem& files, const std::string& series_directory, SeriesId series,
    const store::ContainerRecord& record);

}  // namespace varve::maintain

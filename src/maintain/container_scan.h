// SPDX-License-Identifier: Apache-2.0
// Finding containers in the files of a series without a catalog.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catalog/location_table.h"
#include "format/container.h"
#include "io/file_system.h"
#include "store/segment_files.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// A container that was found, with nothing counted as live in it.
struct FoundContainer {
  store::ContainerRecord record;
  std::vector<catalog::LocationRecord> runs;  ///< Of its chunks, in the order of its table.
};

/// A part of a file in which no container could be found.
struct UnreadRange {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct ContainerScan {
  std::vector<FoundContainer> containers;  ///< By file, then by offset. No number stands twice.
  std::vector<UnreadRange> unread;
  std::uint64_t bytes_read = 0;
  std::uint32_t next_segment = 0;  ///< Above the number of every file, without the volume's bit.
};

/// Reads the headers of all containers. Where a header is damaged, a later one is only believed if
/// from there one container follows another up to the file's end: what lies in a container may
/// itself be the image of one. kUnsupported for a container of a newer format. `progress` gets the
/// bytes of files that were passed.
[[nodiscard]] Result<ContainerScan> scan_containers(
    io::FileSystem& files, const std::string& series_directory, SeriesId series,
    const std::function<void(std::uint64_t bytes)>& progress);

}  // namespace varve::maintain

// SPDX-License-Identifier: Apache-2.0
// Finds containers in the files of a store without a catalog.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "catalog/location_table.h"
#include "format/container.h"
#include "format/container_record.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// A container found by the scan. Its record counts no chunks as live.
struct FoundContainer {
  format::ContainerRecord record;
  std::vector<catalog::LocationRecord> runs;  ///< Runs of its chunks, in the order of its table.
};

/// A part of a file without a readable container.
struct UnreadRange {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct ContainerScan {
  std::vector<FoundContainer> containers;  ///< By file, then by offset. Each number occurs once.
  std::vector<UnreadRange> unread;
  std::uint64_t bytes_read = 0;
  /// Greater than the number of every file; without the volume's bit.
  SegmentNumber next_segment{};
};

/// Reads the headers of all containers. After a damaged header, accepts a later header only if from
/// there containers follow each other up to the end of the file. Otherwise it may be part of a
/// container's data, such as an image of a repository. Calls `progress` with the bytes of each
/// scanned file.
/// Errors: kUnsupported for a container of a newer format.
[[nodiscard]] Result<ContainerScan> scan_containers(
    store::SegmentStore& store, StoreId store_id,
    const std::function<void(std::uint64_t bytes)>& progress);

}  // namespace varve::maintain

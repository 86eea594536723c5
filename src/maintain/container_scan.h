// SPDX-License-Identifier: Apache-2.0
// Finds containers in the files of a store without a catalog.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/location_table.h"
#include "format/container.h"
#include "format/container_record.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// A container found by the scan. The container's record counts no chunks as live.
struct FoundContainer {
  format::ContainerRecord record;
  std::vector<catalog::LocationRecord> runs;  ///< Runs of chunks, in the table's order.
  std::vector<std::uint64_t> digests;         ///< Sum of format::chunk_digest() of each run.
  format::BirthMarks marks;                   ///< As in the header.
  bool by_search = false;  ///< Found behind damage: maybe a part of a stored file.
};

/// A part of a file without a readable container.
struct UnreadRange {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The choice about containers found only by a search behind damage. Such a container may be part
/// of a stored file, for example of another repository, and cannot be distinguished from the
/// repository's own containers.
enum class FoundBySearch : std::uint8_t { kTake, kLeave };

/// A container that is left out, with the path of its file.
struct RepeatedContainer {
  std::string path;
  FoundContainer found;
};

struct ContainerScan {
  std::vector<FoundContainer> containers;  ///< By file, then by offset.
  std::vector<UnreadRange> unread;
  /// The containers with the number of an earlier container.
  std::vector<RepeatedContainer> repeated;
  /// The ranges behind damage in which a search found containers, whether taken or left.
  std::vector<UnreadRange> searched;
  std::uint64_t bytes_read = 0;
  /// Greater than the number of every file; without the volume's bit.
  SegmentNumber next_segment{};
};

/// Reads the headers of all containers in the files `names`. Corrects one wrong byte of a fixed
/// header in memory: the fixed header locates the next container, even if the rest of the header is
/// damaged. Behind worse damage, searches for a header from which containers follow each other up
/// to the end of the file, and takes or leaves the containers according to `found`. Calls
/// `progress` with the bytes of each scanned file. `keys` are the keys of the repository's
/// containers, or null. Errors: kUnsupported for a container of a newer format.
[[nodiscard]] Result<ContainerScan> scan_files(
    store::SegmentStore& store, const format::ContainerKeys* keys, StoreId store_id,
    const std::vector<SegmentNumber>& names, FoundBySearch found,
    const std::function<void(std::uint64_t bytes)>& progress);

/// Reads the headers of all containers of a store, as scan_files().
[[nodiscard]] Result<ContainerScan> scan_containers(
    store::SegmentStore& store, const format::ContainerKeys* keys, StoreId store_id,
    FoundBySearch found, const std::function<void(std::uint64_t bytes)>& progress);

/// Returns the ids of all chunks in the containers of a scan.
[[nodiscard]] base::IdRuns chunks_in(const ContainerScan& scan);

/// Moves each container with the number of an earlier container to ContainerScan::repeated. A
/// mixture of two histories may repeat numbers, so the caller first removes the containers of the
/// other history.
void drop_repeated_numbers(ContainerScan& scan, const store::SegmentStore& store);

}  // namespace varve::maintain

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
  std::vector<std::uint64_t> digests;         ///< Sum of format::chunk_digest() of each run.
  format::BirthMarks marks;                   ///< As in the header.
  bool by_search = false;  ///< Found behind damage: it may be a part of a stored file.
};

/// A part of a file without a readable container.
struct UnreadRange {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The containers that only a search behind damage finds. They may be parts of a stored file, such
/// as one of another repository, and nothing tells them from the repository's own.
enum class FoundBySearch : std::uint8_t { kTake, kLeave };

/// A container that is left out, with the path of its file.
struct RepeatedContainer {
  std::string path;
  FoundContainer found;
};

struct ContainerScan {
  std::vector<FoundContainer> containers;  ///< By file, then by offset.
  std::vector<UnreadRange> unread;
  /// The containers whose number an earlier one has.
  std::vector<RepeatedContainer> repeated;
  /// The parts behind damage in which a search found containers, whether they were taken or left.
  std::vector<UnreadRange> searched;
  std::uint64_t bytes_read = 0;
  /// Greater than the number of every file; without the volume's bit.
  SegmentNumber next_segment{};
};

/// Reads the headers of all containers. Corrects one wrong byte of a fixed header in memory: it
/// says where the next container starts, even if the rest of the header is damaged. Behind a worse
/// one, searches for a header from which containers follow each other up to the end of the file,
/// and does with them what `found` says. Calls `progress` with the bytes of each scanned file.
/// Errors: kUnsupported for a container of a newer format.
/// `keys` are those of the repository's containers, or null.
[[nodiscard]] Result<ContainerScan> scan_containers(
    store::SegmentStore& store, const format::ContainerKeys* keys, StoreId store_id,
    FoundBySearch found, const std::function<void(std::uint64_t bytes)>& progress);

/// Moves the containers whose number an earlier one has to ContainerScan::repeated. A mixture of
/// two histories may have several of a number, so the caller takes out those of another history
/// first.
void drop_repeated_numbers(ContainerScan& scan, const store::SegmentStore& store);

}  // namespace varve::maintain

// SPDX-License-Identifier: Apache-2.0
// The parity files of a series: each file protects a group of segments or of volumes. Parity files
// are derived data: only repair reads the files, and any file may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "format/parity.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::parity {

struct Group {
  GroupNumber number{0};  ///< Number of the parity file.
  format::ParityIndex index;
  std::uint64_t bytes = 0;  ///< Length of the parity file.
};

struct GroupListing {
  std::vector<Group> groups;  ///< In ascending number.
  /// Unusable files: both copies of the index are damaged.
  std::vector<std::pair<GroupNumber, Error>> damaged;
  GroupNumber next_number{1};  ///< Greater than the number of every file.
};

/// Lists the groups with their members, without the checksums: 12 bytes per member. Skips files of
/// a newer format. Returns an empty listing if the folder does not exist.
[[nodiscard]] Result<GroupListing> list_groups(store::SegmentStore& store, StoreId store_id);

/// Loads the checksums of a group: 8 bytes for each 16 KiB of data.
/// Errors: kCorrupt if both copies are damaged.
[[nodiscard]] Result<format::ParitySums> load_sums(store::SegmentStore& store, const Group& group);

/// Returns the defects of a parity file's indexes and blocks; "" for a sound file. Reads the whole
/// file.
/// Errors: kNotFound without a file.
[[nodiscard]] Result<std::string> faults_of_group(store::SegmentStore& store, const Group& group);

}  // namespace varve::parity

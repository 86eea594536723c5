// SPDX-License-Identifier: Apache-2.0
// Keeps the parity of a series up to date with its files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/parity.h"
#include "parity/group_files.h"
#include "parity/group_writer.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::parity {

/// A segment or volume that can only be cut or removed.
struct DataFile {
  SegmentNumber segment{};  ///< File number, with kVolumeBit for a volume.
  std::uint64_t bytes = 0;  ///< Length according to the catalog.
  bool archived = false;    ///< True for a file with the form of a volume.
  /// Version of the file. Files of one version are likely to be removed together.
  std::uint32_t version = 0;
  bool operator==(const DataFile&) const = default;
};

/// Returns the amount of data that makes a group full. The parity of a full group can restore any
/// two damaged containers.
[[nodiscard]] std::uint64_t full_group_bytes(std::uint32_t percent);

struct GroupPlan {
  std::vector<std::vector<format::ParityMember>> make;
  /// Groups to remove at once.
  std::vector<GroupNumber> remove;
  /// Groups to remove after all of `make` is written.
  std::vector<GroupNumber> replaced;
};

/// Plans the groups. Keeps full groups with unchanged members. Groups all remaining files again as
/// soon as a remaining file is new. So the active set and the volumes each have at most one group
/// below the full size. `percent` 0 means no parity.
[[nodiscard]] GroupPlan plan_groups(const std::vector<DataFile>& present,
                                    const std::vector<Group>& groups, std::uint32_t percent);

/// Returns the number of files that belong to a group whose members are all unchanged.
[[nodiscard]] std::size_t count_protected(const std::vector<DataFile>& present,
                                          const std::vector<Group>& groups);

struct KeepOptions {
  /// Size of the parity in per cent of the data; 0 removes existing parity.
  std::uint32_t percent = 0;
  /// Called with the bytes read and written. Returns false to stop; complete groups remain.
  std::function<bool(std::uint64_t)> pass;
};

struct KeepReport {
  bool finished = false;
  std::uint64_t groups_made = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  /// Files unreadable in part, or with bytes changed since the computation of their parity. The old
  /// parity stays. (A concurrent cut or removal also makes a file unreadable.)
  std::vector<SegmentNumber> damaged;
};

/// Writes missing groups, then removes groups that are no longer needed. A crash in between leaves
/// surplus groups, never too few. Only one call at a time may run for a series.
/// Errors: kNoSpace; the older groups remain.
[[nodiscard]] Result<KeepReport> keep_parity(store::SegmentStore& store, StoreId store_id,
                                             const std::vector<DataFile>& present,
                                             const KeepOptions& options);

}  // namespace varve::parity

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/parity.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::parity {

/// The checksums in older groups of the first blocks of each file.
using KnownSums = std::map<SegmentNumber, std::vector<std::uint64_t>>;

struct GroupOutcome {
  bool written = false;  ///< False if `pass` stopped the work or a member is damaged.
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  /// Members unreadable in part, or with bytes that do not match the older checksums. New parity
  /// would preserve the damage.
  std::vector<SegmentNumber> damaged;
};

/// Computes the parity of index.members and writes the parity as a whole to the group's file. Calls
/// `pass` with the number of bytes read; `pass` returns false to stop. Memory: the parity and 8
/// MiB.
[[nodiscard]] Result<GroupOutcome> write_group(store::SegmentStore& store, GroupNumber number,
                                               format::ParityIndex index, const KnownSums& known,
                                               const std::function<bool(std::uint64_t)>& pass);

}  // namespace varve::parity

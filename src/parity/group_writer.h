// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "format/parity.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::parity {

/// Checksums of a file's blocks, from its start, as an older group has them.
using KnownSums = std::map<std::uint32_t, std::vector<std::uint64_t>>;

struct GroupOutcome {
  bool written = false;  ///< False if it was stopped, or a member is damaged.
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  /// Members that cannot be read whole, or whose bytes are not those that their older checksums
  /// are of: parity of these would make the damage the truth.
  std::vector<std::uint32_t> damaged;
};

/// Computes the parity of index.members and writes it to group_path(number): beside, synced,
/// renamed; the folder must exist. `pass` gets bytes read, and ends it by returning false. Takes
/// memory for the parity, and 8 MiB.
[[nodiscard]] Result<GroupOutcome> write_group(io::FileSystem& files,
                                               const std::string& series_directory,
                                               std::uint32_t number, format::ParityIndex index,
                                               const KnownSums& known,
                                               const std::function<bool(std::uint64_t)>& pass);

}  // namespace varve::parity

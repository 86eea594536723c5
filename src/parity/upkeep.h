// SPDX-License-Identifier: Apache-2.0
// Keeps the parity of a series in step with its files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/parity.h"
#include "io/file_system.h"
#include "parity/group_files.h"
#include "parity/group_writer.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::parity {

/// A segment or a volume that does not change any more but by being cut or removed.
struct DataFile {
  std::uint32_t segment = 0;  ///< With store::kVolumeBit.
  std::uint64_t bytes = 0;    ///< That the catalog names.
  bool archived = false;      ///< Not of the active set.
  std::uint32_t version = 0;  ///< Files of one are likely to go together.
  bool operator==(const DataFile&) const = default;
};

/// Data from which on a group is full: its parity brings back any two damaged containers.
[[nodiscard]] std::uint64_t full_group_bytes(std::uint32_t percent);

struct GroupPlan {
  std::vector<std::vector<format::ParityMember>> make;
  /// Groups that nothing needs, whatever is made.
  std::vector<std::uint32_t> remove;
  /// Groups that nothing needs as soon as all of `make` is there.
  std::vector<std::uint32_t> replaced;
};

/// Full groups whose members are as they were stay. All other files are grouped again as soon as
/// there is anything new, so that there is at most one group that is not full for each of the
/// active set and the volumes. `percent` 0: there is to be no parity.
[[nodiscard]] GroupPlan plan_groups(const std::vector<DataFile>& present,
                                    const std::vector<Group>& groups, std::uint32_t percent);

/// How many of the files are in a group that has all of them as they are.
[[nodiscard]] std::size_t count_protected(const std::vector<DataFile>& present,
                                          const std::vector<Group>& groups);

struct KeepOptions {
  std::uint32_t percent = 0;  ///< 0: parity that is there is removed.
  /// Gets bytes read and written, and ends the work by returning false; what is whole stays.
  std::function<bool(std::uint64_t)> pass;
};

struct KeepReport {
  bool finished = false;
  std::uint64_t groups_made = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  /// Files that cannot be read whole (they may have been cut or removed meanwhile), or whose bytes
  /// changed since parity was made of them: that is kept as it is.
  std::vector<std::uint32_t> damaged;
};

/// Makes what is missing, then removes what is not needed any more: a crash in between leaves too
/// much. One at a time for a series. kNoSpace leaves the older groups.
[[nodiscard]] Result<KeepReport> keep_parity(io::FileSystem& files,
                                             const std::string& series_directory, SeriesId series,
                                             const std::vector<DataFile>& present,
                                             const KeepOptions& options);

}  // namespace varve::parity

// SPDX-License-Identifier: Apache-2.0
// The parity files of a series: each protects a group of segments or of volumes. They are derived
// data: nothing but mending reads them, and any of them may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/parity.h"
#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::parity {

/// Below the series' folder.
inline constexpr const char* kGroupFolder = "parity";

struct Group {
  std::uint32_t number = 0;  ///< Of its file.
  format::ParityIndex index;
  std::uint64_t bytes = 0;  ///< Of its file.
};

struct GroupListing {
  std::vector<Group> groups;  ///< In ascending number.
  /// Files that cannot be used: both copies of the index are damaged.
  std::vector<std::pair<std::uint32_t, Error>> damaged;
  std::vector<std::string> leftovers;  ///< Names of files that were not finished.
  std::uint32_t next_number = 1;       ///< Above that of every file.
};

[[nodiscard]] std::string group_path(const std::string& series_directory, std::uint32_t number);

/// Reads what the groups protect, without the checksums: 12 bytes a member. Files of a newer
/// format are passed over. No folder is an empty one.
[[nodiscard]] Result<GroupListing> list_groups(io::FileSystem& files,
                                               const std::string& series_directory,
                                               SeriesId series);

/// 8 bytes for each 16 KiB of data. kCorrupt if neither copy is right.
[[nodiscard]] Result<format::ParitySums> load_sums(io::FileSystem& files,
                                                   const std::string& series_directory,
                                                   const Group& group);

/// What is wrong with a parity file: of either index, and of parity blocks. Empty if nothing is.
/// kNotFound if it is gone. Reads all of it.
[[nodiscard]] Result<std::string> faults_of_group(io::FileSystem& files,
                                                  const std::string& series_directory,
                                                  const Group& group);

}  // namespace varve::parity

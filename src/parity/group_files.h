// SPDX-License-Identifier: Apache-2.0
// The parity files of a series: each protects a group of segments or of volumes. They are derived
// data: only repair reads them, and any of them may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/ids.h"
#include "format/parity.h"
#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::parity {

/// Folder of the parity files, below the series' folder.
inline constexpr const char* kGroupFolder = "parity";

struct Group {
  GroupNumber number{0};  ///< Number of its file.
  format::ParityIndex index;
  std::uint64_t bytes = 0;  ///< Length of its file.
};

struct GroupListing {
  std::vector<Group> groups;  ///< In ascending number.
  /// Unusable files: both copies of the index are damaged.
  std::vector<std::pair<GroupNumber, Error>> damaged;
  std::vector<std::string> leftovers;  ///< Names of unfinished files.
  GroupNumber next_number{1};          ///< Greater than the number of every file.
};

[[nodiscard]] std::string group_path(const std::string& series_directory, GroupNumber number);

/// Lists the groups with their members, without the checksums: 12 bytes per member. Skips files of
/// a newer format. Returns an empty listing if the folder does not exist.
[[nodiscard]] Result<GroupListing> list_groups(io::FileSystem& files,
                                               const std::string& series_directory,
                                               SeriesId series);

/// Loads the checksums of a group: 8 bytes for each 16 KiB of data.
/// Errors: kCorrupt if both copies are damaged.
[[nodiscard]] Result<format::ParitySums> load_sums(io::FileSystem& files,
                                                   const std::string& series_directory,
                                                   const Group& group);

/// Returns the defects of a parity file's indexes and blocks; "" if it is sound. Reads the whole
/// file.
/// Errors: kNotFound without a file.
[[nodiscard]] Result<std::string> faults_of_group(io::FileSystem& files,
                                                  const std::string& series_directory,
                                                  const Group& group);

}  // namespace varve::parity

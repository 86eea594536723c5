// SPDX-License-Identifier: Apache-2.0
// Damaged containers of one series, restored where they are from the series' parity.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "parity/group_files.h"
#include "parity/group_restorer.h"
#include "store/segment_files.h"
#include "varve/repair.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// One use, one thread. Nothing else may change the series meanwhile. Takes as much memory as the
/// parity of a group, and a few containers.
class ParityRepairer {
 public:
  using Pass = std::function<void(std::uint64_t bytes)>;

  ParityRepairer(io::FileSystem& files, std::string series_directory, SeriesId series)
      : files_(files), directory_(std::move(series_directory)), series_(series) {}

  /// Finds out which of the damaged containers parity brings back: it restores them in memory and
  /// compares all of it with their own checksums, every chunk's SHA-256 included. Reads the groups
  /// that have them.
  [[nodiscard]] Result<void> scan(const std::vector<store::ContainerRecord>& damaged,
                                  const Pass& pass);
  /// The same where there is no catalog to name containers: of all files that are there, by the
  /// checksums that the groups have of their blocks. What a file lacks at its end may have been cut
  /// on purpose, and is not restored.
  [[nodiscard]] Result<void> scan_without_catalog(const Pass& pass);
  /// Reads all parity files, and notes the damaged ones.
  [[nodiscard]] Result<void> scan_parity();

  /// True if scan() found something to restore.
  [[nodiscard]] bool restores() const { return !restorable_.empty(); }
  [[nodiscard]] std::vector<RepairStep> steps() const;
  /// Restores again, and writes the blocks over the damaged ones (docs/ORDERING.md O31). Then
  /// removes damaged parity files.
  [[nodiscard]] Result<void> execute(RepairReport& report, const Pass& pass);

 private:
  struct Restorable {
    store::ContainerRecord record;
    std::uint32_t group = 0;
    std::uint32_t blocks = 0;  ///< That are damaged.
  };
  /// A container as parity makes it.
  struct Image {
    std::vector<std::byte> bytes;
    /// What of it is written: offset and length.
    std::vector<std::pair<std::size_t, std::size_t>> parts;
  };
  using Found = std::function<Result<void>(const store::ContainerRecord&, const Image&)>;

  /// Restores those of `records` that a group has, and that come out whole.
  [[nodiscard]] Result<void> restore(const parity::Group& group,
                                     const std::vector<store::ContainerRecord>& records,
                                     const Pass& pass, const Found& found);
  using Blocks = std::map<std::uint32_t, std::vector<std::byte>>;
  /// The containers of a member that blocks in `restored` belong to, found by their headers from
  /// the file's start on; up to where one cannot be read.
  void name_containers(const parity::GroupRestorer& restorer, std::size_t member,
                       const Blocks& restored, std::vector<store::ContainerRecord>& found) const;
  /// Bytes of a member's file, with restored blocks in their places.
  [[nodiscard]] std::vector<std::byte> repaired_bytes(const parity::GroupRestorer& restorer,
                                                      std::size_t member, const Blocks& restored,
                                                      std::uint64_t offset,
                                                      std::uint64_t bytes) const;
  [[nodiscard]] std::vector<std::byte> read_leniently(std::uint32_t segment, std::uint64_t offset,
                                                      std::uint64_t bytes) const;
  [[nodiscard]] Result<bool> is_whole(const store::ContainerRecord& record,
                                      const Image& image) const;
  [[nodiscard]] Result<void> write(const store::ContainerRecord& record, const Image& image) const;

  io::FileSystem& files_;
  const std::string directory_;
  const SeriesId series_;
  parity::GroupListing listing_;
  std::vector<Restorable> restorable_;
  std::vector<std::pair<std::uint32_t, std::string>> damaged_groups_;  // With what is wrong.
};

}  // namespace varve::maintain

// SPDX-License-Identifier: Apache-2.0
// Restores damaged containers of one series in place, from the series' parity.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/container_record.h"
#include "format/data_codecs.h"
#include "parity/group_files.h"
#include "parity/group_restorer.h"
#include "store/segment_store.h"
#include "varve/repair.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Restores damaged containers of one series from parity. For one use by one thread. Nothing else
/// may change the series during its lifetime. Memory: the parity of a group, and a few containers.
class ParityRepairer {
 public:
  using Pass = std::function<void(std::uint64_t bytes)>;

  /// Lifetime: `codecs` and `store` must outlive the repairer.
  ParityRepairer(const format::DataCodecs& codecs, store::SegmentStore& store, StoreId store_id)
      : codecs_(codecs), store_(store), store_id_(store_id) {}

  /// Finds the damaged containers that parity can restore. Restores each container in memory and
  /// verifies the container completely, with the SHA-256 of every chunk. Reads the groups with
  /// damaged containers.
  [[nodiscard]] Result<void> scan(const std::vector<format::ContainerRecord>& damaged,
                                  const Pass& pass);
  /// Finds the restorable containers without a catalog: compares the blocks of all existing files
  /// with the checksums in the groups. Does not restore a missing end of a file, because Varve may
  /// have cut the file. Does not restore a container where another sound container is: the parity
  /// may belong to another state of the files.
  [[nodiscard]] Result<void> scan_without_catalog(const Pass& pass);
  /// Reads all parity files and records the damaged ones.
  [[nodiscard]] Result<void> scan_parity();

  /// Returns true if a scan found containers to restore.
  [[nodiscard]] bool restores() const { return !restorable_.empty(); }
  [[nodiscard]] std::vector<RepairStep> steps() const;
  /// Restores the containers a second time, and corrects each damaged file once per group
  /// (docs/ORDERING.md O26). Then removes damaged parity files.
  [[nodiscard]] Result<void> execute(RepairReport& report, const Pass& pass);

 private:
  struct Restorable {
    format::ContainerRecord record;
    GroupNumber group{};
    std::uint32_t blocks = 0;  ///< Number of damaged blocks of the container.
  };
  /// A container restored from parity.
  struct Image {
    std::vector<std::byte> bytes;
    /// The parts to write, as offset and length.
    std::vector<std::pair<std::size_t, std::size_t>> parts;
  };
  using Found = std::function<Result<void>(const format::ContainerRecord&, const Image&)>;

  /// Restores the containers of `records` protected by the group. Calls `found` for each verified
  /// container.
  [[nodiscard]] Result<void> restore(const parity::Group& group,
                                     const std::vector<format::ContainerRecord>& records,
                                     const Pass& pass, const Found& found);
  using Blocks = std::map<std::uint32_t, std::vector<std::byte>>;
  /// Appends the containers of a member with blocks in `restored`. Finds the containers by their
  /// headers from the file's start on, up to an unreadable header.
  void name_containers(const parity::GroupRestorer& restorer, std::size_t member,
                       const Blocks& restored, std::vector<format::ContainerRecord>& found) const;
  /// Returns bytes of a member's file, including the restored blocks.
  [[nodiscard]] std::vector<std::byte> repaired_bytes(const parity::GroupRestorer& restorer,
                                                      std::size_t member, const Blocks& restored,
                                                      std::uint64_t offset,
                                                      std::uint64_t bytes) const;
  /// Returns whether a sound container begins at a place of a file.
  [[nodiscard]] bool is_sound(SegmentNumber segment, std::uint64_t offset) const;
  [[nodiscard]] std::vector<std::byte> read_leniently(SegmentNumber segment, std::uint64_t offset,
                                                      std::uint64_t bytes) const;
  [[nodiscard]] Result<bool> is_whole(const format::ContainerRecord& record,
                                      const Image& image) const;

  const format::DataCodecs& codecs_;
  store::SegmentStore& store_;
  const StoreId store_id_;
  parity::GroupListing listing_;
  std::vector<Restorable> restorable_;
  // Number and defect of each damaged parity file.
  std::vector<std::pair<GroupNumber, std::string>> damaged_groups_;
};

}  // namespace varve::maintain

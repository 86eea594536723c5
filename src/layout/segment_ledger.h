// SPDX-License-Identifier: Apache-2.0
// Changes of the places of chunks, computed on a snapshot of the catalog and applied at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "meta/lmdb.h"
#include "store/container_writer.h"
#include "store/segment_files.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Files to shorten or remove after the commit of the records.
struct FileCut {
  SegmentNumber segment{};
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  ///< 0: the file is removed.
};

/// Returns the places of a written container's chunks, in the order of its table.
[[nodiscard]] std::vector<catalog::LocationRecord> locations_of(
    const store::WrittenContainer& written);

/// Keeps the records of containers and segments consistent while locations change. A segment
/// without located chunks is removed, and so are empty containers at a segment's end. The same code
/// forecasts and performs a deletion.
///
/// Not thread-safe. The transaction must outlive the ledger. No other code may change the records
/// touched by the ledger before apply().
class SegmentLedger {
 public:
  SegmentLedger(const meta::Txn& txn, StoreId store_id) : txn_(txn), store_id_(store_id) {}

  /// Adds a written container, and locates its chunks in the container.
  [[nodiscard]] Result<void> add(const store::WrittenContainer& written, catalog::SegmentRole role,
                                 VersionNumber version);
  /// Removes the location of the record's chunks, except for the parts in `rest`.
  [[nodiscard]] Result<void> remove(const catalog::LocationRecord& location,
                                    const std::vector<catalog::LocationRecord>& rest);

  /// Computes the segments and containers to remove. Call finish() once, after all changes.
  [[nodiscard]] Result<void> finish();
  [[nodiscard]] bool empty() const {
    return containers_.empty() && segments_.empty() && put_.empty();
  }
  /// Valid after finish().
  [[nodiscard]] const std::vector<FileCut>& cuts() const { return cuts_; }
  [[nodiscard]] std::uint64_t freed_bytes() const;
  /// Returns the stored bytes that ceased to be live and stay in files that arranging may write
  /// again: files of the active set, and small volumes. A chunk counts with its share of the
  /// container, including tables and padding. Valid after finish().
  [[nodiscard]] std::uint64_t dead_bytes() const;
  /// Writes the changes; the caller commits, and then frees the files (docs/ORDERING.md O7).
  [[nodiscard]] Result<void> apply(meta::WriteTxn& txn) const;

 private:
  [[nodiscard]] Result<format::ContainerRecord*> container(ContainerNumber number);
  [[nodiscard]] Result<catalog::SegmentRecord*> segment(SegmentNumber number);
  /// `held` has the touched containers of the segment.
  [[nodiscard]] Result<void> finish_segment(catalog::SegmentRecord& segment,
                                            std::vector<format::ContainerRecord> held);

  const meta::Txn& txn_;
  const StoreId store_id_;
  std::map<ContainerNumber, format::ContainerRecord> containers_;
  std::map<SegmentNumber, catalog::SegmentRecord> segments_;
  std::set<ContainerNumber> containers_gone_;
  std::set<SegmentNumber> segments_gone_;
  std::vector<ChunkId> erased_;
  std::vector<catalog::LocationRecord> put_;
  std::vector<FileCut> cuts_;
  // Raw bytes that ceased to be live, by container that arranging may copy.
  std::map<ContainerNumber, std::uint64_t> dead_;
};

/// Shortens and removes files. A missing file is no error. Returns the first error, after trying
/// all files.
[[nodiscard]] Result<void> free_files(store::SegmentStore& store, const std::vector<FileCut>& cuts);

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
// Changes to where chunks lie, worked out on a snapshot of the catalog and applied at once.
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

/// Files that are shorter, or gone, once the records are committed.
struct FileCut {
  SegmentNumber segment{};
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  ///< 0: the file goes.
};

/// Returns the places of a written container's chunks, in the order of its table.
[[nodiscard]] std::vector<catalog::LocationRecord> locations_of(
    const store::WrittenContainer& written);

/// Keeps containers' and segments' records true while locations change: a segment in which
/// nothing is located any more goes, and so do such containers at a segment's end. The same
/// code says what a deletion would free and frees it.
///
/// Not thread-safe. The transaction must outlive the ledger, and nobody else may change the
/// records that it touches before apply().
class SegmentLedger {
 public:
  SegmentLedger(const meta::Txn& txn, StoreId store_id) : txn_(txn), store_id_(store_id) {}

  /// Adds a container that was written, and locates its chunks there.
  [[nodiscard]] Result<void> add(const store::WrittenContainer& written, catalog::SegmentRole role,
                                 VersionNumber version);
  /// The chunks of the record lie here no longer, but for those in `rest`, parts of it.
  [[nodiscard]] Result<void> remove(const catalog::LocationRecord& location,
                                    const std::vector<catalog::LocationRecord>& rest);

  /// Works out what goes. Call it once, after all changes.
  [[nodiscard]] Result<void> finish();
  [[nodiscard]] bool empty() const {
    return containers_.empty() && segments_.empty() && put_.empty();
  }
  /// Valid after finish().
  [[nodiscard]] const std::vector<FileCut>& cuts() const { return cuts_; }
  [[nodiscard]] std::uint64_t freed_bytes() const;
  /// Returns the stored bytes that ceased to be live and stay in files that arranging may write
  /// again: those of the active set, and small volumes. A chunk counts with its share of its
  /// container, with the tables and the padding. Valid after finish().
  [[nodiscard]] std::uint64_t dead_bytes() const;
  /// Writes the changes; the caller commits, and then frees the files (docs/ORDERING.md O7).
  [[nodiscard]] Result<void> apply(meta::WriteTxn& txn) const;

 private:
  [[nodiscard]] Result<format::ContainerRecord*> container(ContainerNumber number);
  [[nodiscard]] Result<catalog::SegmentRecord*> segment(SegmentNumber number);
  /// `held` has the containers of the segment that were touched.
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
  // Raw bytes that ceased to be live, of containers that arranging may copy.
  std::map<ContainerNumber, std::uint64_t> dead_;
};

/// Shortens and removes files. A missing file is no error. Returns the first error, after trying
/// all files.
[[nodiscard]] Result<void> free_files(store::SegmentStore& store, const std::vector<FileCut>& cuts);

}  // namespace varve::layout

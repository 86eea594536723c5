// SPDX-License-Identifier: Apache-2.0
// The layout's records of a series: container files, counters, retention and quarantine, and the
// arrange settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "meta/lmdb.h"
#include "varve/arrange.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The purpose of a container file.
enum class SegmentRole : std::uint8_t {
  kNew = 0,     ///< Level 0 of the active set: the chunks stored by one version.
  kMerged = 1,  ///< Level 1: merged from level 0.
  kBase = 2,    ///< Level 2.
  kVolume = 3,  ///< Archived: chunks whose last user was the version `version`.
};

/// A container file on record in the catalog.
struct SegmentRecord {
  /// File number, with kVolumeBit if the file was created as a volume.
  SegmentNumber segment{};
  SegmentRole role = SegmentRole::kNew;
  /// For a volume, the last version that used the volume's chunks. Otherwise, the files of one role
  /// and version form one run.
  VersionNumber version{};
  std::uint64_t bytes = 0;       ///< Length of the file: the end of the last container.
  std::uint64_t raw_bytes = 0;   ///< Raw size of all containers in the file.
  std::uint64_t live_bytes = 0;  ///< Raw size of the chunks that the catalog locates in the file.
  std::uint32_t containers = 0;
  ContainerNumber first_container{};  ///< Lowest container number in the file.

  [[nodiscard]] bool active() const { return role != SegmentRole::kVolume; }
};

[[nodiscard]] Result<std::optional<SegmentRecord>> find_segment(const meta::Txn& txn,
                                                                StoreId store_id,
                                                                SegmentNumber segment);
/// Returns all segments of a series in ascending number.
[[nodiscard]] Result<std::vector<SegmentRecord>> list_segments(const meta::Txn& txn,
                                                               StoreId store_id);
[[nodiscard]] Result<void> put_segment(meta::WriteTxn& txn, StoreId store_id,
                                       const SegmentRecord& record);
[[nodiscard]] Result<void> erase_segment(meta::WriteTxn& txn, StoreId store_id,
                                         SegmentNumber segment);

/// The lowest container and segment numbers never committed. No number is used twice, because a
/// reader may still look for the number's earlier file.
struct CounterRecord {
  ContainerNumber next_container{};
  SegmentNumber next_segment{};  ///< Without kVolumeBit.
};
[[nodiscard]] Result<CounterRecord> find_counters(const meta::Txn& txn, StoreId store_id);
/// Returns the least counters above the numbers of all containers and files on record. The stored
/// counters are never lower, unless an older counter record was restored. Ignores damaged records.
[[nodiscard]] CounterRecord least_counters(const meta::Txn& txn, StoreId store_id);
/// Raises the stored counters to `counters`. Never lowers a counter.
[[nodiscard]] Result<void> raise_counters(meta::WriteTxn& txn, StoreId store_id,
                                          const CounterRecord& counters);

/// Retention state of a sealed version, stored beside the version's own record.
struct RetentionRecord {
  bool side = false;       ///< True if the version does not count for the window.
  Timestamp locked_until;  ///< End of the lock; zero if not locked.
};
/// Returns a version's record. A version without a record is a main version and not locked.
[[nodiscard]] Result<RetentionRecord> find_retention(const meta::Txn& txn, SeriesId series,
                                                     VersionNumber number);
[[nodiscard]] std::string encode_retention(const RetentionRecord& record);
/// Decodes a retention record. Errors: kCorrupt on malformed bytes.
[[nodiscard]] Result<RetentionRecord> decode_retention(std::string_view bytes);
/// Calls `visit` for each version with a record, ascending, until `visit` returns false.
[[nodiscard]] Result<void> for_each_retention(
    const meta::Txn& txn, SeriesId series,
    const std::function<Result<bool>(VersionNumber, const RetentionRecord&)>& visit);
[[nodiscard]] Result<void> put_retention(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                                         const RetentionRecord& record);
[[nodiscard]] Result<void> erase_retention(meta::WriteTxn& txn, SeriesId series,
                                           VersionNumber number);

/// Returns the chunks in quarantine: known to be damaged, so new data must not refer to a chunk of
/// the set. Without a record, the set is empty.
[[nodiscard]] Result<base::IdRuns> find_quarantine(const meta::Txn& txn, StoreId store_id);
[[nodiscard]] Result<void> put_quarantine(meta::WriteTxn& txn, StoreId store_id,
                                          const base::IdRuns& chunks);

/// Returns the stored settings, or the defaults if none are stored.
[[nodiscard]] Result<ArrangeSettings> find_arrange_settings(const meta::Txn& txn);
[[nodiscard]] Result<void> put_arrange_settings(meta::WriteTxn& txn,
                                                const ArrangeSettings& settings);
/// Checks the range of each value. Errors: kInvalid.
[[nodiscard]] Result<void> validate_arrange_settings(const ArrangeSettings& settings);

}  // namespace varve::catalog

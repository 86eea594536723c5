// SPDX-License-Identifier: Apache-2.0
// The records by which the layout keeps stored chunks in order: files, counters, and what
// concerns a version's retention.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::catalog {

/// What a file of containers is for.
enum class SegmentRole : std::uint8_t {
  kNew = 0,     ///< Level 0 of the active set: what one version stored.
  kMerged = 1,  ///< Level 1: merged from level 0.
  kBase = 2,    ///< Level 2.
  kVolume = 3,  ///< Archived: chunks whose last user was the version `version`.
};

/// A file of containers that the catalog knows.
struct SegmentRecord {
  std::uint32_t segment = 0;  ///< With store::kVolumeBit, whatever its role is by now.
  SegmentRole role = SegmentRole::kNew;
  /// Of a volume the death of its chunks; else, files of one role and version are one run.
  VersionNumber version{};
  std::uint64_t bytes = 0;       ///< Up to the end of the last container; the file's length.
  std::uint64_t raw_bytes = 0;   ///< Of all its containers.
  std::uint64_t live_bytes = 0;  ///< Of these, chunks that are located here.
  std::uint32_t containers = 0;
  std::uint32_t first_container = 0;  ///< The lowest number of these.

  [[nodiscard]] bool active() const { return role != SegmentRole::kVolume; }
};

[[nodiscard]] Result<std::optional<SegmentRecord>> find_segment(const meta::Txn& txn,
                                                                SeriesId series,
                                                                std::uint32_t segment);
/// In ascending number.
[[nodiscard]] Result<std::vector<SegmentRecord>> list_segments(const meta::Txn& txn,
                                                               SeriesId series);
[[nodiscard]] Result<void> put_segment(meta::WriteTxn& txn, SeriesId series,
                                       const SegmentRecord& record);
[[nodiscard]] Result<void> erase_segment(meta::WriteTxn& txn, SeriesId series,
                                         std::uint32_t segment);

/// Numbers from which on none was ever committed, so that none is used twice: somebody may
/// still look for what had it.
struct CounterRecord {
  std::uint32_t next_container = 0;
  std::uint32_t next_segment = 0;  ///< Without store::kVolumeBit.
};
[[nodiscard]] Result<CounterRecord> find_counters(const meta::Txn& txn, SeriesId series);
/// Never lowers a counter.
[[nodiscard]] Result<void> raise_counters(meta::WriteTxn& txn, SeriesId series,
                                          const CounterRecord& counters);

/// What is kept of a sealed version beside its own record.
struct RetentionRecord {
  bool side = false;       ///< Does not count for the window.
  Timestamp locked_until;  ///< Zero: not locked.
};
/// A version without a record is a main one, and not locked.
[[nodiscard]] Result<RetentionRecord> find_retention(const meta::Txn& txn, SeriesId series,
                                                     VersionNumber number);
/// Errors: kCorrupt on malformed bytes.
[[nodiscard]] Result<RetentionRecord> decode_retention(std::string_view bytes);
[[nodiscard]] Result<void> put_retention(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                                         const RetentionRecord& record);
[[nodiscard]] Result<void> erase_retention(meta::WriteTxn& txn, SeriesId series,
                                           VersionNumber number);

/// Chunks that are known to be damaged and that new data must not refer to; none without a record.
[[nodiscard]] Result<base::IdRuns> find_quarantine(const meta::Txn& txn, SeriesId series);
[[nodiscard]] Result<void> put_quarantine(meta::WriteTxn& txn, SeriesId series,
                                          const base::IdRuns& chunks);

/// The defaults where nothing was set.
[[nodiscard]] Result<ArrangeSettings> find_arrange_settings(const meta::Txn& txn);
[[nodiscard]] Result<void> put_arrange_settings(meta::WriteTxn& txn,
                                                const ArrangeSettings& settings);
/// kInvalid if a value is out of its range.
[[nodiscard]] Result<void> validate_arrange_settings(const ArrangeSettings& settings);

}  // namespace varve::catalog

// SPDX-License-Identifier: Apache-2.0
// The policies that choose the next work of the arranger. A policy decides from the present state
// of the disk, so a crash or a change of the policy needs no clean-up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "varve/arrange.h"
#include "varve/types.h"

namespace varve::layout {

/// A dead range in a container that is as long as this costs a reader a request of its own, and
/// counts as this much. The reader reads through a shorter one.
inline constexpr std::uint64_t kGapCostMax = 64U << 10;

/// A series' active set, without the files of an open version. Departing chunks count as live.
struct ActiveState {
  std::vector<catalog::SegmentRecord> files;
  /// Raw bytes of the gaps between the live chunks of a file's containers, each at most
  /// kGapCostMax: what the newest version's reader pays for the file's dead chunks. A file without
  /// an entry has none.
  std::map<SegmentNumber, std::uint64_t> gap_bytes;
  std::uint64_t departing_bytes = 0;  ///< Raw bytes of chunks that are to leave it.
  VersionNumber newest{};             ///< Sealed version.
  /// Sealed versions since the base was last written. Only for ArrangePolicyKind::kBatched.
  std::uint32_t versions_behind = 0;
};

enum class ChunkOrder : std::uint8_t {
  kStream,  ///< As the newest version's files have them, in tree order.
  kBirth,   ///< By chunk id.
};

/// The work of writing the live chunks of files again as one run, or as a part of one.
struct RewriteJob {
  std::vector<SegmentNumber> segments;
  catalog::SegmentRole role = catalog::SegmentRole::kBase;
  VersionNumber version{};
  ChunkOrder order = ChunkOrder::kStream;
};

/// Chooses the next work. Not thread-safe.
class ArrangePolicy {
 public:
  virtual ~ArrangePolicy() = default;
  /// Returns true if the arranger should move the departing chunks to their volumes now.
  [[nodiscard]] virtual bool wants_departure(const ActiveState& state) const = 0;
  /// Returns the next files to rewrite, or nullopt if no work is left. Call it only if
  /// wants_departure() returned false, or no chunk is departing.
  [[nodiscard]] virtual std::optional<RewriteJob> next(const ActiveState& state) const = 0;
};

/// Returns the policy of the settings, which must be valid.
[[nodiscard]] std::unique_ptr<ArrangePolicy> make_arrange_policy(const ArrangeSettings& settings);

/// Returns the number of runs that the files form.
[[nodiscard]] std::size_t count_runs(const std::vector<catalog::SegmentRecord>& files);

}  // namespace varve::layout

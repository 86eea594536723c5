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

/// The longest gap between live chunks of a container that a reader reads through, in raw bytes.
/// Includes the parts of the gap within frames of live chunks.
inline constexpr std::uint64_t kGapReadMax = 96U << 10;
/// The cost of a longer gap, in bytes. The reader skips the gap, but reads one more frame, in a
/// separate request.
inline constexpr std::uint64_t kGapSkipCost = 40U << 10;

/// Returns the cost of a gap for the reader of the newest version, in bytes.
[[nodiscard]] constexpr std::uint64_t gap_cost(std::uint64_t gap_bytes) {
  return gap_bytes > kGapReadMax ? kGapSkipCost : gap_bytes;
}

/// A series' active set, without the files of an open version. Departing chunks count as live.
struct ActiveState {
  std::vector<catalog::SegmentRecord> files;
  /// Sum of gap_cost() of the gaps between the live chunks of a file's containers: the cost of dead
  /// chunks for the reader of the newest version. A file without an entry has no gaps.
  std::map<SegmentNumber, std::uint64_t> gap_bytes;
  std::uint64_t departing_bytes = 0;  ///< Raw bytes of departing chunks.
  /// If the newest version has no more bytes than this number, then dead bytes, bytes of gaps and
  /// departing bytes, each up to this number, wait for more, because each byte that arranging
  /// writes is uploaded. 0 without an object store. Only for ArrangePolicyKind::kTiered.
  std::uint64_t spare_bytes = 0;
  VersionNumber newest{};  ///< Newest sealed version.
  /// Number after the numbers of all containers. The age of a container is the distance from the
  /// container's number to next_container.
  ContainerNumber next_container{};
  /// Sealed versions since the base was last written. Only for ArrangePolicyKind::kBatched.
  std::uint32_t versions_behind = 0;
};

enum class ChunkOrder : std::uint8_t {
  kStream,  ///< Order in the newest version: files in tree order.
  kBirth,   ///< Order by chunk id.
};

/// The work of writing the live chunks of files again as one run, or as a part of a run.
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
  /// Returns the next files to rewrite, or nullopt if no work is left. Call next() only if
  /// wants_departure() returned false, or no chunk is departing.
  [[nodiscard]] virtual std::optional<RewriteJob> next(const ActiveState& state) const = 0;
};

/// Returns the policy of valid settings.
[[nodiscard]] std::unique_ptr<ArrangePolicy> make_arrange_policy(const ArrangeSettings& settings);

/// Returns the number of runs formed by the files.
[[nodiscard]] std::size_t count_runs(const std::vector<catalog::SegmentRecord>& files);

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
// Chooses small volumes for the arranger to merge. Otherwise each version would leave a separate
// file for as long as a version needs a chunk of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "layout/window.h"
#include "varve/types.h"

namespace varve::layout {

/// A volume of at most this length, in bytes, is small: arranging may write the chunks again. A
/// longer volume is only cut at the end, or removed.
inline constexpr std::uint64_t kSmallVolumeBytes = 4U << 20;

/// The limits of a job.
struct CoalescingLimits {
  std::uint64_t stored_bytes_max = kSmallVolumeBytes;  ///< Length of a small volume; 0: no jobs.
  std::uint64_t raw_bytes_max = 32U << 20;             ///< Raw size of the copied chunks.
  std::size_t fan = 8;  ///< Number of volumes of similar size, at least 2.
  /// Number of successive deaths whose volumes are compressed together, at least 2; see
  /// next_delta_job().
  std::size_t delta_fan = 8;
  /// Most stored bytes of joined deaths, relative to as many raw bytes of single ones, for which
  /// joining fewer deaths than the fan pays: of deaths that span less than the fan, and more.
  double delta_few_share = 0.85;
  double delta_many_share = 0.75;
  /// Raw bytes of the chunks that are compared with each other. A plan takes about 250 bytes of
  /// memory for each chunk.
  std::uint64_t delta_part_bytes = 512U << 20;
  /// Length of a volume of chunks that are compressed together.
  std::uint64_t delta_volume_bytes_max = 64U << 20;
};

/// The work of writing the live chunks of volumes again, as volumes of a single death.
struct CoalescingJob {
  std::vector<SegmentNumber> volumes;
  VersionNumber death{};  ///< The highest death of the volumes.
};

/// Returns the next job, or nullopt if none is left. Each job leaves fewer small volumes.
/// - Eight volumes of about the same size, of up to an eighth of a small volume's length, are
///   merged. So a byte is copied once for each factor of eight between the length of its first
///   volume and the limit.
/// - A volume with more than half of the bytes dead is written again alone.
///
/// Volumes of the window, which opening a version takes back, are coalesced only if they have the
/// same newest live version. `versions` ascend; `window` is ArrangeSettings::window.
[[nodiscard]] std::optional<CoalescingJob> next_coalescing(
    const std::vector<catalog::SegmentRecord>& segments, const std::vector<LiveVersion>& versions,
    std::uint32_t window, const CoalescingLimits& limits);

}  // namespace varve::layout

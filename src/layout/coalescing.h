// SPDX-License-Identifier: Apache-2.0
// Chooses small volumes that the arranger writes again as one. Otherwise each version would leave a
// file of its own for as long as a version needs a chunk of it.
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

/// A volume of at most this length, in bytes, is small: arranging may write its chunks again. A
/// longer one is only cut at its end, or removed.
inline constexpr std::uint64_t kSmallVolumeBytes = 4U << 20;

/// The limits of one job.
struct CoalescingLimits {
  std::uint64_t stored_bytes_max = kSmallVolumeBytes;  ///< Length of a small volume; 0: no jobs.
  std::uint64_t raw_bytes_max = 32U << 20;             ///< Raw size of the copied chunks.
  std::size_t fan = 8;  ///< Number of volumes of one size, at least 2.
};

/// The work of writing the live chunks of volumes again, as volumes of one death.
struct CoalescingJob {
  std::vector<SegmentNumber> volumes;
  VersionNumber death{};  ///< The highest of the volumes.
};

/// Returns the next job, or nullopt if none is left. Each job leaves fewer small volumes.
/// - Eight volumes of about the same size, of up to an eighth of a small volume's length, become
///   one. So a byte is copied once for each factor of eight between the length of its first volume
///   and the limit.
/// - A volume that is dead by more than a half is written again alone.
///
/// Volumes of the window, which a version that is opened takes back, are coalesced only if their
/// newest live version is the same. `versions` ascend; `window` is ArrangeSettings::window.
[[nodiscard]] std::optional<CoalescingJob> next_coalescing(
    const std::vector<catalog::SegmentRecord>& segments, const std::vector<LiveVersion>& versions,
    std::uint32_t window, const CoalescingLimits& limits);

}  // namespace varve::layout

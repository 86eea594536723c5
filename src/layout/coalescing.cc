// SPDX-License-Identifier: Apache-2.0
#include "layout/coalescing.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace varve::layout {

namespace {

using catalog::SegmentRecord;

// Volumes of a class differ in length by less than this power of two.
constexpr int kClassBits = 3;

/// The size of a volume after a copy. Estimates the stored bytes by the share of live raw bytes.
struct Candidate {
  const SegmentRecord* volume = nullptr;
  std::uint64_t stored_bytes = 0;
  std::uint64_t raw_bytes = 0;
};

}  // namespace

std::optional<CoalescingJob> next_coalescing(const std::vector<SegmentRecord>& segments,
                                             const std::vector<LiveVersion>& versions,
                                             std::uint32_t window, const CoalescingLimits& limits) {
  std::vector<LiveVersion> sealed;
  for (const auto& version : versions) {
    if (version.sealed) sealed.push_back(version);
  }
  const auto start = window_start(sealed, window);
  // The volumes that may be coalesced, by newest live version, if in the window, and by size.
  std::map<std::pair<VersionNumber, int>, std::vector<Candidate>> alike;
  for (const auto& volume : segments) {
    if (volume.active() || volume.bytes > limits.stored_bytes_max || volume.raw_bytes == 0) {
      continue;
    }
    if ((volume.raw_bytes - volume.live_bytes) * 2 > volume.raw_bytes) {
      return CoalescingJob{{volume.segment}, volume.version};
    }
    const Candidate candidate{&volume, volume.bytes * volume.live_bytes / volume.raw_bytes,
                              volume.live_bytes};
    // Longer volumes are few, and a copy would cost more than the gain.
    if (candidate.stored_bytes * limits.fan > limits.stored_bytes_max ||
        candidate.raw_bytes * limits.fan > limits.raw_bytes_max) {
      continue;
    }
    const auto user = newest_at_most(sealed, volume.version);
    const auto group = user < start ? VersionNumber{} : user;
    const auto bits = static_cast<int>(std::bit_width(candidate.stored_bytes));
    const int size_class = (bits + kClassBits - 1) / kClassBits;
    alike[{group, size_class}].push_back(candidate);
  }
  for (auto& entry : alike) {
    auto& candidates = entry.second;
    if (candidates.size() < limits.fan) continue;
    // Volumes of neighbouring deaths have the most versions in common.
    std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.volume->version != b.volume->version ? a.volume->version < b.volume->version
                                                    : a.volume->segment < b.volume->segment;
    });
    CoalescingJob job;
    std::uint64_t stored_bytes = 0;
    std::uint64_t raw_bytes = 0;
    for (const auto& candidate : candidates) {
      stored_bytes += candidate.stored_bytes;
      raw_bytes += candidate.raw_bytes;
      if (stored_bytes > limits.stored_bytes_max || raw_bytes > limits.raw_bytes_max) break;
      job.volumes.push_back(candidate.volume->segment);
      job.death = candidate.volume->version;
    }
    return job;
  }
  return std::nullopt;
}

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "catalog/layout_records.h"
#include "layout/window.h"

namespace varve::layout {

/// Returns the record of a volume whose chunks are all located.
inline catalog::SegmentRecord volume(std::uint32_t number, std::uint32_t death,
                                     std::uint64_t bytes = 1000) {
  catalog::SegmentRecord record;
  record.segment = as_volume(static_cast<SegmentNumber>(number));
  record.role = catalog::SegmentRole::kVolume;
  record.version = static_cast<VersionNumber>(death);
  record.bytes = record.raw_bytes = record.live_bytes = bytes;
  return record;
}

/// Returns sealed main versions with the numbers 1 to `last`.
inline std::vector<LiveVersion> versions_up_to(std::uint32_t last) {
  std::vector<LiveVersion> versions;
  for (std::uint32_t i = 1; i <= last; ++i) {
    versions.push_back({static_cast<VersionNumber>(i), true, false});
  }
  return versions;
}

}  // namespace varve::layout

// SPDX-License-Identifier: Apache-2.0
#include "restore/read_announcer.h"

#include <algorithm>

namespace varve::restore {

void ReadAnnouncer::announce(const LookAheadWindow& chunks, std::uint64_t from,
                             std::uint64_t bytes_ahead, std::uint64_t average_bytes) {
  const std::uint64_t count = bytes_ahead / std::max<std::uint64_t>(average_bytes, 1);
  const std::uint64_t end = std::min(from + count, chunks.end());
  std::uint64_t at = std::max(announced_, from);
  while (at < end) {
    const ChunkId first = chunks.id(at);
    const auto location = source_->locate(first);
    // Whoever reads the chunk will say what is wrong with it.
    if (!location || first < location->first) break;
    const std::uint64_t skipped = first.value - location->first.value;
    const std::uint64_t left = location->count - std::min<std::uint64_t>(skipped, location->count);
    std::uint32_t run = 1;
    while (run < left && at + run < chunks.end() && chunks.id(at + run) == first.plus(run)) ++run;
    if (note(location->container)) source_->will_read(location->container, run);
    at += run;
  }
  announced_ = std::max(announced_, at);
}

/// False if the container is one of the last.
bool ReadAnnouncer::note(std::uint32_t container) {
  if (std::ranges::find(recent_, container) != recent_.end()) return false;
  recent_[next_++ % recent_.size()] = container;
  return true;
}

}  // namespace varve::restore

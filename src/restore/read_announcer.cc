// SPDX-License-Identifier: Apache-2.0
#include "restore/read_announcer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "restore/read_costs.h"

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
    const std::uint32_t index = location->index + static_cast<std::uint32_t>(skipped);
    add({location->container, index, index + run});
    at += run;
  }
  announced_ = std::max(announced_, at);
  if (parts_.empty()) return;
  auto tell = [source = source_, parts = std::exchange(parts_, {}), average_bytes] {
    for (const Part& part : parts) {
      // Of what the engine reads past the page cache, only the head comes into it.
      const std::uint32_t chunks_wanted = part.end - part.begin;
      const bool is_long = chunks_wanted * average_bytes >= kLongSliceBytes;
      source->will_read(part.container, part.begin, is_long ? 0 : chunks_wanted);
    }
  };
  if (workers_ != nullptr) {
    workers_->run(std::move(tell));
  } else {
    tell();
  }
}

/// Chunks that have changed since interrupt the run of their neighbours in a container, which is
/// announced as one nevertheless.
void ReadAnnouncer::add(const Part& part) {
  constexpr std::size_t kPartsTried = 8;
  constexpr std::uint32_t kGapMax = 32;
  const std::size_t tried = std::min(parts_.size(), kPartsTried);
  for (auto known = parts_.rbegin(); known != parts_.rbegin() + static_cast<std::ptrdiff_t>(tried);
       ++known) {
    if (known->container != part.container || part.begin < known->begin ||
        part.begin > known->end + kGapMax) {
      continue;
    }
    known->end = std::max(known->end, part.end);
    return;
  }
  parts_.push_back(part);
}

}  // namespace varve::restore

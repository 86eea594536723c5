// SPDX-License-Identifier: Apache-2.0
#include "restore/read_announcer.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "restore/read_costs.h"

namespace varve::restore {
namespace {

// Changed chunks are in separate containers and interrupt the run of their neighbours. The memory
// of recent containers prevents repeated announcements of the same container.
constexpr std::ptrdiff_t kContainersRemembered = 32;

// Counts the chunks of one run only. All chunks of a container have the same age or category, so
// the remaining runs are needed as much.
bool is_mostly_needed(const LookAheadWindow& chunks, const layout::LocationRun& run) {
  std::uint64_t needed = 0;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    needed += chunks.first_use(run.first.plus(i)) != LookAheadWindow::kNever ? 1 : 0;
  }
  return needed * kWholeContainerShare >= run.count;
}

}  // namespace

void ReadAnnouncer::announce(const LookAheadWindow& chunks, std::uint64_t from,
                             std::uint64_t count) {
  const std::uint64_t end = std::min(from + count, chunks.end());
  std::uint64_t at = std::max(announced_, from);
  while (at < end) {
    const ChunkId first = chunks.id(at);
    const auto location = source_->locate(first);
    // The read of the chunk reports the error.
    if (!location || first < location->first) break;
    const std::uint64_t skipped = first.value - location->first.value;
    const std::uint64_t left = location->count - std::min<std::uint64_t>(skipped, location->count);
    std::uint32_t run = 1;
    while (run < left && at + run < chunks.end() && chunks.id(at + run) == first.plus(run)) ++run;
    const auto newest =
        containers_.end() - std::min(kContainersRemembered, std::ssize(containers_));
    if (std::find(newest, containers_.end(), location->container) == containers_.end()) {
      containers_.push_back(location->container);
      are_whole_.push_back(source_->answers_later() && is_mostly_needed(chunks, *location));
    }
    at += run;
  }
  announced_ = std::max(announced_, at);
  if (containers_.empty()) return;
  auto tell = [source = source_, containers = std::exchange(containers_, {}),
               are_whole = std::exchange(are_whole_, {})] {
    for (std::size_t i = 0; i < containers.size(); ++i) {
      if (are_whole[i]) {
        source->will_read_all(containers[i]);
      } else {
        source->will_read_header(containers[i]);
      }
    }
  };
  // A distant source queues its requests, and the planner needs the first headers at once.
  if (workers_ != nullptr && !source_->answers_later()) {
    workers_->run(std::move(tell));
  } else {
    tell();
  }
}

}  // namespace varve::restore

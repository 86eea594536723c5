// SPDX-License-Identifier: Apache-2.0
#include "restore/read_announcer.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace varve::restore {
namespace {

// Changed chunks are in other containers and interrupt the run of their neighbours. This memory
// lets each container be announced once nevertheless.
constexpr std::ptrdiff_t kContainersRemembered = 32;

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
    }
    at += run;
  }
  announced_ = std::max(announced_, at);
  if (containers_.empty()) return;
  auto tell = [source = source_, containers = std::exchange(containers_, {})] {
    for (const ContainerNumber container : containers) source->will_read_header(container);
  };
  if (workers_ != nullptr) {
    workers_->run(std::move(tell));
  } else {
    tell();
  }
}

}  // namespace varve::restore

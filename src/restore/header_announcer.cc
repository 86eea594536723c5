// SPDX-License-Identifier: Apache-2.0
#include "restore/header_announcer.h"

#include <algorithm>

namespace varve::restore {

void HeaderAnnouncer::on_read(base::ThreadPool& workers) {
  if (ended_.load() || reads_.fetch_add(1) < kReadsMin || busy_.exchange(true)) return;
  workers.run([self = shared_from_this()] { self->announce(); });
}

void HeaderAnnouncer::announce() {
  const std::uint64_t wanted = std::uint64_t{reads_.load() - kReadsMin} * kHeadersPerRead;
  while (!ended_ && announced_.size() < wanted) {
    if (announced_.size() == kHeadersMax || !announce_next()) ended_ = true;
  }
  busy_ = false;
}

/// Announces the next container. Returns false at the end of the file, or if a location cannot be
/// found. The read of the chunk reports the error.
bool HeaderAnnouncer::announce_next() {
  const auto& runs = file_.content.recipe->runs;
  while (run_ < runs.size()) {
    const format::RecipeRun& run = runs[run_];
    if (run.is_hole() || chunk_ >= run.count) {
      ++run_;
      chunk_ = 0;
      continue;
    }
    const ChunkId id = run.first.plus(chunk_);
    const auto location = file_.source->locate(id);
    if (!location || id < location->first) return false;
    const std::uint64_t skip = id.value - location->first.value;
    if (skip >= location->count) return false;
    chunk_ += static_cast<std::uint32_t>(
        std::min<std::uint64_t>(location->count - skip, run.count - chunk_));
    if (!announced_.insert(location->container).second) continue;
    file_.source->will_read_header(location->container);
    return true;
  }
  return false;
}

}  // namespace varve::restore

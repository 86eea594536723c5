// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "layout/layout.h"
#include "restore/look_ahead_window.h"

namespace varve::restore {

/// Announces the containers that the window reaches next, so that the headers are in memory when
/// the engine plans its reads. At an unread header, the planner waits for the disk while no read is
/// in flight. AheadReads fetches the data of the containers. If the window needs most chunks of a
/// container, asks a distant source to read the whole container. Used by one thread at a time.
class ReadAnnouncer {
 public:
  /// Announces on `workers`, because the kernel allocates memory for the bytes within the call; on
  /// the calling thread if `workers` is nullptr.
  /// Lifetime: `workers` and the source must outlive the calls under way.
  ReadAnnouncer(layout::ChunkSource* source, base::ThreadPool* workers)
      : source_(source), workers_(workers) {}

  /// Announces the containers of `count` chunks from window position `from` on. Skips containers
  /// announced before.
  void announce(const LookAheadWindow& chunks, std::uint64_t from, std::uint64_t count);

 private:
  layout::ChunkSource* const source_;
  base::ThreadPool* const workers_;
  // Window position up to which all containers are announced.
  std::uint64_t announced_ = 0;
  std::vector<ContainerNumber> containers_;  // Containers of one call of announce().
  std::vector<bool> are_whole_;              // Whether to read each container as a whole.
};

}  // namespace varve::restore

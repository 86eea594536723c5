// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "layout/layout.h"
#include "restore/look_ahead_window.h"

namespace varve::restore {

/// Announces the containers that the window reaches next, so that their headers are in memory when
/// the engine plans its reads. A planner that meets an unread header waits for the disk, and no
/// other read is under way then. AheadReads fetches the data of these containers. A distant source
/// is told to read whole containers of which the window needs most chunks. Used by one thread at a
/// time.
class ReadAnnouncer {
 public:
  /// Announces on `workers`, because the kernel allocates memory for the bytes within the call; on
  /// the calling thread if `workers` is nullptr.
  /// Lifetime: `workers` and the source must outlive the calls under way.
  ReadAnnouncer(layout::ChunkSource* source, base::ThreadPool* workers)
      : source_(source), workers_(workers) {}

  /// Announces the containers of `count` chunks from window position `from` on that are not
  /// announced yet.
  void announce(const LookAheadWindow& chunks, std::uint64_t from, std::uint64_t count);

 private:
  layout::ChunkSource* const source_;
  base::ThreadPool* const workers_;
  // Window position up to which all containers are announced.
  std::uint64_t announced_ = 0;
  std::vector<ContainerNumber> containers_;  // Containers of one call of announce().
  std::vector<bool> are_whole_;              // Whether each of them is read as a whole.
};

}  // namespace varve::restore

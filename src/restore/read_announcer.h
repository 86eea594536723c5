// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "layout/layout.h"
#include "restore/look_ahead_window.h"

namespace varve::restore {

/// Tells the source which containers the window comes to next, so that their headers are in memory
/// when the engine plans what to read of them: one after the other, and nothing else is read then.
/// What is needed of their data AheadReads fetches. Used by one thread at a time.
class ReadAnnouncer {
 public:
  /// Announcing is left to `workers`, since the kernel finds memory for what it will read within
  /// the call; they and the source outlive what is under way. Without workers it is done at once.
  ReadAnnouncer(layout::ChunkSource* source, base::ThreadPool* workers)
      : source_(source), workers_(workers) {}

  /// Announces the containers of `count` chunks from window position `from` on, as far as they
  /// are not announced yet.
  void announce(const LookAheadWindow& chunks, std::uint64_t from, std::uint64_t count);

 private:
  layout::ChunkSource* const source_;
  base::ThreadPool* const workers_;
  std::uint64_t announced_ = 0;            // Window position up to which all is announced.
  std::vector<std::uint32_t> containers_;  // Of one call of announce().
};

}  // namespace varve::restore

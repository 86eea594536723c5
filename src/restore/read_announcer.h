// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "layout/layout.h"
#include "restore/look_ahead_window.h"

namespace varve::restore {

/// Tells the source which containers the window comes to next, so that the disk reads them
/// while what comes before is verified and copied. One area is read at a time, whose last
/// requests leave the disk idle; and what the kernel reads ahead by itself knows neither the
/// order nor the gaps. Used by one thread at a time.
class ReadAnnouncer {
 public:
  /// Announcing is left to `workers`, since the kernel finds memory for what it will read within
  /// the call; they and the source outlive what is under way. Without workers it is done at once.
  ReadAnnouncer(layout::ChunkSource* source, base::ThreadPool* workers)
      : source_(source), workers_(workers) {}

  /// Announces the chunks from window position `from` on, as far as
  /// `bytes_ahead` reach and they are not announced yet. `average_bytes` is a chunk's.
  void announce(const LookAheadWindow& chunks, std::uint64_t from, std::uint64_t bytes_ahead,
                std::uint64_t average_bytes);

 private:
  // Chunks of one container.
  struct Part {
    std::uint32_t container = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  void add(const Part& part);

  layout::ChunkSource* const source_;
  base::ThreadPool* const workers_;
  std::uint64_t announced_ = 0;  // Window position up to which all is announced.
  std::vector<Part> parts_;      // Of one call of announce().
};

}  // namespace varve::restore

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "format/container.h"
#include "restore/buffer_pool.h"

namespace varve::restore {

/// The buffers of one thread to fetch and decode a slice.
struct ReadLane {
  std::span<std::byte> stored;  ///< Buffer for a stored slice, aligned for direct access.
  std::span<std::byte> frame;   ///< Buffer for a decoded frame, of format::kFrameRawBytesMax bytes.
  Buffer larger;                ///< Replaces `stored` for a slice larger than `stored`.
};

/// Runs the requests of an engine in parallel, on the calling thread and on workers. Handles one
/// call at a time.
class ReadLanes {
 public:
  /// With `workers` == nullptr or one lane, runs everything on the calling thread, in order.
  /// `stored_bytes`: the usual maximum of a slice; longer slices are rare.
  /// Lifetime: both pools must outlive the lanes.
  ReadLanes(BufferPool* buffers, base::ThreadPool* workers, std::size_t lanes,
            std::size_t stored_bytes);

  /// Calls work(job, lane) for each of `jobs`, and returns when all are done. Never waits for a
  /// worker that has not begun, so that busy workers cause no delay.
  void run(std::size_t jobs, const std::function<void(std::size_t job, ReadLane& lane)>& work);

  [[nodiscard]] std::size_t bytes() const;

 private:
  base::ThreadPool* const workers_;
  Buffer memory_;  // Memory of all lanes in one piece, in huge pages if available.
  std::vector<ReadLane> lanes_;
};

}  // namespace varve::restore

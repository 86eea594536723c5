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

/// What one thread needs to fetch and decode a slice.
struct ReadLane {
  std::span<std::byte> stored;  ///< Room for a slice as it lies on disk, aligned for direct access.
  std::span<std::byte> frame;   ///< A decoded frame, format::kFrameRawBytesMax.
  Buffer larger;                ///< In place of `stored` for a slice that is too long for it.
};

/// Runs the requests of an engine several at a time, on the calling thread and on workers.
/// One call at a time.
class ReadLanes {
 public:
  /// Without workers, or with one lane, everything runs on the calling thread, in order. Both
  /// pools outlive the lanes. Slices have at most `stored_bytes`, but for rare ones.
  ReadLanes(BufferPool* buffers, base::ThreadPool* workers, std::size_t lanes,
            std::size_t stored_bytes);

  /// Calls work(job, lane) for each of `jobs`; returns when all are done. Never waits for a
  /// worker that has not begun, so it does not matter what else keeps them busy.
  void run(std::size_t jobs, const std::function<void(std::size_t job, ReadLane& lane)>& work);

  [[nodiscard]] std::size_t bytes() const;

 private:
  base::ThreadPool* const workers_;
  Buffer memory_;  // Of all lanes in one piece, as large pages as there are.
  std::vector<ReadLane> lanes_;
};

}  // namespace varve::restore

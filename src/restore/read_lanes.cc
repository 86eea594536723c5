// SPDX-License-Identifier: Apache-2.0
#include "restore/read_lanes.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "layout/layout.h"

namespace varve::restore {
namespace {

// Shared with the workers, because a worker may start after the call has returned.
struct Round {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // No further lock is taken under it.
  std::condition_variable left;
  std::size_t inside = 0;
  bool is_closed = false;
};

}  // namespace

ReadLanes::ReadLanes(BufferPool* buffers, base::ThreadPool* workers, std::size_t lanes,
                     std::size_t stored_bytes)
    : workers_(workers) {
  const std::size_t useful = workers == nullptr ? 1 : std::min(lanes, workers->threads() + 1);
  const std::size_t count = std::max<std::size_t>(useful, 1);
  const std::size_t room = layout::room_for(stored_bytes);
  const std::size_t lane_bytes = room + format::kFrameRawBytesMax;
  // Uses huge pages unless they would need much more memory: see BufferPool.
  const std::size_t bytes = count * lane_bytes;
  memory_ = buffers->acquire(count > 1 ? std::max(bytes, BufferPool::kSlotsBytes) : bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const auto memory = memory_.first(bytes).subspan(i * lane_bytes, lane_bytes);
    lanes_.push_back({memory.first(room), memory.subspan(room), {}});
  }
}

void ReadLanes::run(std::size_t jobs,
                    const std::function<void(std::size_t job, ReadLane& lane)>& work) {
  const std::size_t lanes = std::min(lanes_.size(), jobs);
  if (lanes <= 1) {
    for (std::size_t job = 0; job < jobs; ++job) work(job, lanes_.front());
    return;
  }
  const auto round = std::make_shared<Round>();
  const auto drain = [&work, jobs](Round& of, ReadLane& lane) {
    for (std::size_t job = of.next++; job < jobs; job = of.next++) work(job, lane);
  };
  for (std::size_t i = 1; i < lanes; ++i) {
    workers_->run([round, &drain, lane = &lanes_[i]] {
      {
        const std::lock_guard lock(round->mutex);
        if (round->is_closed) return;
        ++round->inside;
      }
      drain(*round, *lane);
      const std::lock_guard lock(round->mutex);
      --round->inside;
      round->left.notify_one();
    });
  }
  drain(*round, lanes_.front());
  std::unique_lock lock(round->mutex);
  round->is_closed = true;
  round->left.wait(lock, [&round] { return round->inside == 0; });
}

std::size_t ReadLanes::bytes() const {
  std::size_t bytes = memory_.capacity();
  for (const ReadLane& lane : lanes_) bytes += lane.larger.capacity();
  return bytes;
}

}  // namespace varve::restore

// SPDX-License-Identifier: Apache-2.0
#include "transfer/writer_pool.h"

#include <memory>
#include <utility>

namespace varve::transfer {

void WriterPool::run(std::size_t bytes, Task task) {
  batch_.push_back(std::move(task));
  batch_bytes_ += bytes;
  if (batch_.size() >= kBatchTasks || batch_bytes_ >= kBatchBytes) flush();
}

void WriterPool::flush() {
  if (batch_.empty()) return;
  const std::size_t bytes = std::exchange(batch_bytes_, 0);
  auto batch = std::make_shared<std::vector<Task>>(std::exchange(batch_, {}));
  {
    std::unique_lock lock(mutex_);
    less_.wait(lock, [&] {
      return tasks_ == 0 || (bytes_ + bytes <= kWaitingBytesMax && tasks_ < kWaitingTasksMax);
    });
    bytes_ += bytes;
    tasks_ += batch->size();
  }
  threads_.run([this, batch, bytes] {
    const std::size_t count = batch->size();
    for (Task& task : *batch) {
      task();
      task = nullptr;  // Frees the memory held by the task before the task counts as done.
    }
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    tasks_ -= count;
    less_.notify_all();
  });
}

void WriterPool::drain() {
  flush();
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return tasks_ == 0; });
}

}  // namespace varve::transfer

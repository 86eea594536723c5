// SPDX-License-Identifier: Apache-2.0
#include "restore/stream_window.h"

#include <utility>

namespace varve::restore {

void StreamWindow::advance(Cursor& cursor, std::uint32_t chunk_bytes) const {
  const std::uint32_t count = run(cursor).count;
  ++cursor.at;
  cursor.bytes += chunk_bytes;
  if (++cursor.chunk < count) return;
  ++cursor.run;
  cursor.chunk = 0;
  cursor.bytes = 0;
}

bool StreamWindow::pull_run() {
  if (ended_) return false;
  auto run = stream_->next();
  if (!run) error_ = std::move(run).error();
  ended_ = !run || !run->has_value();
  if (ended_) return false;
  if (runs_.empty()) stream_position_ = (*run)->position;
  runs_.push_back(**run);
  back_chunks_ = 0;
  back_ids_.count = 0;
  return true;
}

/// Returns the id of the next chunk of the last run, and counts the chunk.
ChunkId StreamWindow::next_id(const StreamRun& run) {
  if (back_ids_.count == 0) {
    const base::IdRun rest{run.first.plus(back_chunks_), run.count - back_chunks_};
    const auto stored = source_->stored_run(rest);
    // The read of the chunk reports the error.
    back_ids_ = stored ? *stored : layout::StoredRun{rest.first, rest.count};
  }
  ++back_chunks_;
  --back_ids_.count;
  return std::exchange(back_ids_.first, back_ids_.first.plus(1));
}

void StreamWindow::fill(std::uint64_t bytes_max) {
  while (!chunks_.full() && bytes_ < bytes_max) {
    if (runs_.empty() || back_chunks_ == runs_.back().count) {
      if (!pull_run()) return;
    }
    const StreamRun& run = runs_.back();
    while (back_chunks_ < run.count && !chunks_.full() && bytes_ < bytes_max) {
      chunks_.push(next_id(run));
      bytes_ += average_chunk(run);
    }
  }
}

/// Removes the first chunk and subtracts the chunk from all counters.
void StreamWindow::pop_chunk() {
  const std::uint64_t bytes = average_chunk(runs_.front());
  if (near_.at == chunks_.begin()) {
    advance(near_, 0);
  } else {
    near_bytes_ -= bytes;
  }
  bytes_ -= bytes;
  chunks_.pop();
  ++front_.at;
  if (++front_.chunk == runs_.front().count) pop_run();
}

void StreamWindow::pop_run() {
  stream_position_ = runs_.front().position + runs_.front().bytes;
  runs_.pop_front();
  ++front_.run;
  front_.chunk = 0;
  front_.bytes = 0;
  if (runs_.empty()) back_chunks_ = 0;
}

void StreamWindow::leave(const Cursor& to) {
  while (front_.at < to.at) pop_chunk();
  front_.bytes = to.bytes;
  if (!runs_.empty()) stream_position_ = runs_.front().position + front_.bytes;
}

Result<void> StreamWindow::skip_to(std::uint64_t position, const OnLeave& on_leave) {
  while (!runs_.empty() || pull_run()) {
    const StreamRun run = runs_.front();
    if (run.position + run.bytes > position) return {};
    const std::uint64_t number = front_.run;
    const bool is_whole = runs_.size() > 1 || back_chunks_ == run.count;
    while (front_.at < chunks_.end() && front_.run == number && !runs_.empty()) {
      on_leave(front_.at);
      pop_chunk();
    }
    if (is_whole) continue;  // pop_chunk() removed the run with its last chunk.
    // The rest of the run is not in the window yet and never enters it.
    pop_run();
    near_ = front_;
    near_bytes_ = 0;
  }
  if (error_) return *error_;
  return {};
}

}  // namespace varve::restore

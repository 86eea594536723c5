// SPDX-License-Identifier: Apache-2.0
// The pipeline's work on the threads of its pool: fingerprints, then places for the chunks.
#include <cerrno>
#include <utility>

#include "ingest/ingest_pipeline.h"

namespace varve::ingest {

void IngestPipeline::fingerprint(const BatchPtr& batch, std::uint64_t ticket) {
  batch->fingerprints.resize(batch->pieces.size());
  for (std::size_t i = 0; i < batch->pieces.size(); ++i) {
    const Piece& piece = batch->pieces[i];
    if (piece.is_ready()) continue;
    batch->fingerprints[i] =
        fingerprinter_.fingerprint({batch->buffer.data.get() + piece.offset, piece.bytes});
  }
  {
    const std::lock_guard lock(commit_mutex_);
    ready_.emplace(ticket, batch);
  }
  commit_ready();
  const std::lock_guard lock(commit_mutex_);
  --tasks_;
  progress_.notify_all();
}

// One thread at a time commits; the others leave their batch and go on.
void IngestPipeline::commit_ready() {
  std::unique_lock lock(commit_mutex_);
  if (committing_ || error_) return;
  committing_ = true;
  while (!ready_.empty() && ready_.begin()->first == committed_ && !error_) {
    const BatchPtr batch = ready_.begin()->second;
    lock.unlock();
    auto done = commit_batch(*batch);
    lock.lock();
    if (!done) {
      if (!error_) error_ = std::move(done).error();
      break;
    }
    in_flight_bytes_ -= batch->buffer.capacity;
    give_back(std::exchange(batch->buffer, {}));
    ready_.erase(ready_.begin());
    ++committed_;
    progress_.notify_all();
  }
  committing_ = false;
  progress_.notify_all();
}

Result<void> IngestPipeline::commit_batch(Batch& batch) {
  std::vector<ChunkId> ids;
  const std::size_t from = batch.next_piece;
  Result<void> outcome;
  for (; batch.next_piece < batch.pieces.size(); ++batch.next_piece) {
    const Piece& piece = batch.pieces[batch.next_piece];
    if (piece.is_ready()) {
      ids.emplace_back();
      continue;
    }
    const Fingerprint& fingerprint = batch.fingerprints[batch.next_piece];
    auto id = index_.find(fingerprint);
    if (!id) {
      auto placed =
          layout_.place(fingerprint, {batch.buffer.data.get() + piece.offset, piece.bytes});
      if (!placed) {
        outcome = std::move(placed).error();
        break;
      }
      id = *placed;
      ++placed_chunks_;
      index_.insert(fingerprint, *id);
    }
    held_ -= piece.bytes;
    ids.push_back(*id);
  }
  const std::lock_guard lock(commit_mutex_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Piece& piece = batch.pieces[from + i];
    if (piece.is_ready()) {
      piece.stream->recipe_.append_run(piece.ready);
    } else {
      piece.stream->recipe_.append_chunk(ids[i], piece.bytes);
    }
    --piece.stream->pieces_in_flight_;
    piece.stream.reset();
  }
  return outcome;
}

void IngestPipeline::give_up() {
  std::unique_lock lock(commit_mutex_);
  error_ = Error(ErrorCode::kReadOnly, "the version was sealed or dropped", EROFS);
  progress_.notify_all();
  progress_.wait(lock, [&] { return !committing_; });
}

Result<void> IngestPipeline::resume() {
  {
    const std::lock_guard lock(commit_mutex_);
    if (!error_) return {};
    if (error_->code() != ErrorCode::kNoSpace) return *error_;
    error_.reset();
  }
  commit_ready();
  const std::lock_guard lock(commit_mutex_);
  if (error_) return *error_;
  return {};
}

Result<void> IngestPipeline::wait_for_ticket(std::uint64_t ticket) {
  std::unique_lock lock(commit_mutex_);
  progress_.wait(lock, [&] { return committed_ >= ticket || error_; });
  if (error_) return *error_;
  return {};
}

}  // namespace varve::ingest

// SPDX-License-Identifier: Apache-2.0
// The pipeline's work on the threads of its pool: fingerprints, then places for the chunks.
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/coding.h"
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

// One thread at a time commits. The others leave their batch to it and continue.
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

// A lookup is for one call of commit_batch() only: after an error, the rest of the batch is looked
// up again, because chunks may have been retired in the meantime.
IngestPipeline::Lookup IngestPipeline::look_up(const Batch& batch) {
  Lookup lookup;
  const auto fingerprints = std::span(batch.fingerprints).subspan(batch.next_piece);
  lookup.stored.resize(fingerprints.size());
  index_.find(fingerprints, lookup.stored);
  if (policy_.wants() != DedupPolicy::Wants::kNothing) decide(batch, lookup);
  lookup.repeated.resize(fingerprints.size());
  std::unordered_set<std::uint64_t> seen;  // The first bytes of a fingerprint tell it well enough.
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    if (batch.pieces[batch.next_piece + i].is_ready()) continue;
    const bool refers = lookup.stored[i] && !lookup.stores_again(i);
    if (refers && lookup.decisions.empty()) continue;
    const auto prefix = base::load_le<std::uint64_t>(fingerprints[i].data());
    lookup.repeated[i] = refers ? seen.contains(prefix) : !seen.insert(prefix).second;
  }
  return lookup;
}

void IngestPipeline::decide(const Batch& batch, Lookup& lookup) {
  std::vector<std::optional<ContainerNumber>> containers(lookup.stored.size());
  if (policy_.wants() == DedupPolicy::Wants::kContainers) containers = containers_of(lookup.stored);
  std::vector<DedupCandidate> segment;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < lookup.stored.size(); ++i) {
    const Piece& piece = batch.pieces[batch.next_piece + i];
    if (piece.is_ready()) continue;
    segment.push_back(
        {batch.fingerprints[batch.next_piece + i], piece.bytes, lookup.stored[i], containers[i]});
    places.push_back(i);
  }
  std::vector<DedupDecision> decisions(segment.size(), DedupDecision::kRefer);
  policy_.decide(segment, decisions);
  lookup.decisions.resize(lookup.stored.size(), DedupDecision::kRefer);
  for (std::size_t i = 0; i < places.size(); ++i) lookup.decisions[places[i]] = decisions[i];
}

std::vector<std::optional<ContainerNumber>> IngestPipeline::containers_of(
    std::span<const std::optional<ChunkId>> stored) {
  std::vector<std::optional<ContainerNumber>> containers(stored.size());
  layout::LocationRun run;  // Neighbours share a run.
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (!stored[i]) continue;
    const ChunkId id = *stored[i];
    if (id < run.first || id.value - run.first.value >= run.count) {
      const auto located = layout_.locate(id);
      if (!located) continue;  // Not written yet.
      run = *located;
    }
    containers[i] = run.container;
  }
  return containers;
}

Result<ChunkId> IngestPipeline::commit_chunk(const Batch& batch, const Lookup& lookup,
                                             std::size_t from, Tally& tally) {
  const Piece& piece = batch.pieces[batch.next_piece];
  const Fingerprint& fingerprint = batch.fingerprints[batch.next_piece];
  const std::size_t i = batch.next_piece - from;
  std::optional<ChunkId> stored = lookup.stored[i];
  bool again = stored && lookup.stores_again(i);
  if (lookup.repeated[i]) {
    // An earlier piece of the batch may have stored the same content since the lookup.
    stored = index_.find_one(fingerprint);
    again = again && stored == lookup.stored[i];
  }
  if (stored && !again) {
    ++tally.duplicate;
    return *stored;
  }
  VARVE_TRY_ASSIGN(
      const ChunkId id,
      layout_.place(fingerprint, {batch.buffer.data.get() + piece.offset, piece.bytes}));
  ++placed_chunks_;
  ++(again ? tally.again : tally.fresh);
  tally.stored_bytes += piece.bytes;
  if (again) {
    index_.replace(fingerprint, id);
  } else {
    index_.insert(fingerprint, id);
  }
  return id;
}

void IngestPipeline::count(const Tally& tally) {
  metrics_.new_chunks.add(tally.fresh);
  metrics_.duplicate_chunks.add(tally.duplicate);
  metrics_.again_chunks.add(tally.again);
  metrics_.stored_bytes.add(tally.stored_bytes);
}

Result<void> IngestPipeline::commit_batch(Batch& batch) {
  const std::size_t from = batch.next_piece;
  const Lookup lookup = look_up(batch);
  std::vector<ChunkId> ids;
  Tally tally;
  Result<void> outcome;
  for (; batch.next_piece < batch.pieces.size(); ++batch.next_piece) {
    const Piece& piece = batch.pieces[batch.next_piece];
    if (piece.is_ready()) {
      ids.emplace_back();
      continue;
    }
    auto id = commit_chunk(batch, lookup, from, tally);
    if (!id) {
      outcome = std::move(id).error();
      break;
    }
    held_ -= piece.bytes;
    ids.push_back(*id);
  }
  count(tally);
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
  error_ = Error(ErrorCode::kReadOnly, "the version was sealed or dropped");
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

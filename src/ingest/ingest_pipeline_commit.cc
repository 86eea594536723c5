// SPDX-License-Identifier: Apache-2.0
// The pipeline's work on the threads of its pool: fingerprints, then places for the chunks.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
  commit_in_task();
}

void IngestPipeline::commit_in_task() {
  commit_ready();
  const std::lock_guard lock(commit_mutex_);
  --tasks_;
  progress_.notify_all();
}

// ---- The order of lookups and commits; commit_mutex_ is held. ----

// One thread at a time looks up and commits. All other threads leave their batches to the
// committing thread and continue.
void IngestPipeline::commit_ready() {
  std::unique_lock lock(commit_mutex_);
  if (committing_ || error_) return;
  committing_ = true;
  while (!error_) {
    if (should_look_up()) {
      const BatchPtr batch = ready_.at(looked_up_);
      lock.unlock();
      look_up(*batch);
      lock.lock();
      if (looked_up_ != committed_) {
        ahead_bytes_ += batch->used;
        ahead_pieces_ += batch->pieces.size();
      }
      ++looked_up_;
    } else if (should_commit()) {
      std::vector<BatchPtr> ahead;
      for (auto t = committed_ + 1; t < looked_up_; ++t) ahead.push_back(ready_.at(t));
      const BatchPtr batch = ready_.begin()->second;
      lock.unlock();
      auto done = commit_batch(*batch, ahead);
      lock.lock();
      if (done) {
        retire_first();
      } else {
        if (!error_) error_ = std::move(done).error();
        forget_lookups();
      }
    } else {
      break;
    }
  }
  committing_ = false;
  progress_.notify_all();
}

bool IngestPipeline::should_look_up() const {
  if (looked_up_ != committed_ &&
      (ahead_bytes_ >= look_ahead_bytes_ || ahead_pieces_ >= kAheadPiecesMax)) {
    return false;
  }
  return ready_.contains(looked_up_);
}

// Waiting for more batches is right only while no caller waits for the first batch's place or for
// memory.
bool IngestPipeline::should_commit() const {
  if (looked_up_ == committed_) return false;
  if (ahead_bytes_ >= look_ahead_bytes_ || ahead_pieces_ >= kAheadPiecesMax) return true;
  if (committed_ < wanted_ || in_flight_bytes_ >= kInFlightBytesMax) return true;
  return ready_.begin()->second->lookup->candidates.empty();
}

void IngestPipeline::retire_first() {
  const BatchPtr batch = ready_.begin()->second;
  in_flight_bytes_ -= batch->buffer.capacity;
  give_back(std::exchange(batch->buffer, {}));
  ready_.erase(ready_.begin());
  ++committed_;
  PlacedMarks::Mark oldest = marks_.now();
  if (looked_up_ != committed_) {
    const Batch& first = *ready_.begin()->second;
    ahead_bytes_ -= first.used;
    ahead_pieces_ -= first.pieces.size();
    oldest = first.lookup->mark;
  }
  marks_.forget_until(oldest);
  progress_.notify_all();
}

// No lookup outlives an error, because chunks may be retired before committing goes on.
void IngestPipeline::forget_lookups() {
  for (auto t = committed_; t < looked_up_; ++t) ready_.at(t)->lookup.reset();
  looked_up_ = committed_;
  ahead_bytes_ = 0;
  ahead_pieces_ = 0;
  marks_.forget_until(marks_.now());
}

// ---- Lookups and decisions; called only by the committing thread. ----

void IngestPipeline::look_up(Batch& batch) {
  Lookup lookup;
  lookup.mark = marks_.now();
  const auto fingerprints = std::span(batch.fingerprints).subspan(batch.next_piece);
  lookup.stored.resize(fingerprints.size());
  index_.find(fingerprints, lookup.stored);
  if (policy_.wants() != DedupPolicy::Wants::kNothing) {
    for (std::size_t i = 0; i < fingerprints.size(); ++i) {
      const Piece& piece = batch.pieces[batch.next_piece + i];
      if (piece.is_ready()) continue;
      DedupCandidate candidate;
      candidate.fingerprint = fingerprints[i];
      candidate.bytes = piece.bytes;
      candidate.stored = lookup.stored[i];
      lookup.candidates.push_back(candidate);
    }
    describe(lookup.candidates);
  }
  batch.lookup = std::move(lookup);
}

void IngestPipeline::describe(std::span<DedupCandidate> candidates) {
  if (policy_.wants() != DedupPolicy::Wants::kContainers) return;
  find_containers(candidates);
  find_elsewhere(candidates);
}

void IngestPipeline::find_containers(std::span<DedupCandidate> candidates) {
  layout::LocationRun run;  // Neighbours share a run.
  for (auto& candidate : candidates) {
    if (!candidate.stored) continue;
    const ChunkId id = *candidate.stored;
    if (id < run.first || id.value - run.first.value >= run.count) {
      const auto located = layout_.locate(id);
      if (!located) continue;  // Not written yet.
      run = *located;
    }
    candidate.container = run.container;
  }
}

void IngestPipeline::find_elsewhere(std::span<DedupCandidate> candidates) {
  std::vector<Fingerprint> fresh;
  for (const auto& candidate : candidates) {
    if (!candidate.stored) fresh.push_back(candidate.fingerprint);
  }
  if (fresh.empty()) return;
  const auto known = std::make_unique<bool[]>(fresh.size());
  index_.find_elsewhere(fresh, {known.get(), fresh.size()});
  std::size_t next = 0;
  for (auto& candidate : candidates) {
    if (!candidate.stored) candidate.elsewhere = known[next++];
  }
}

// Looks up again the chunks whose content was placed since the batch's lookup.
void IngestPipeline::refresh(Batch& batch) {
  Lookup& lookup = *batch.lookup;
  std::size_t next = 0;
  for (std::size_t i = 0; i < lookup.stored.size() && next < lookup.candidates.size(); ++i) {
    if (batch.pieces[batch.next_piece + i].is_ready()) continue;
    DedupCandidate& candidate = lookup.candidates[next++];
    if (!marks_.placed_after(candidate.fingerprint, lookup.mark)) continue;
    const auto stored = index_.find_one(candidate.fingerprint);
    if (stored == candidate.stored) continue;
    lookup.stored[i] = stored;
    candidate.stored = stored;
    candidate.container.reset();
    candidate.elsewhere = false;
    describe({&candidate, 1});
  }
  lookup.mark = marks_.now();
}

void IngestPipeline::decide(Batch& batch, std::span<const BatchPtr> ahead) {
  Lookup& lookup = *batch.lookup;
  if (lookup.candidates.empty()) return;
  lookup.decisions.assign(lookup.candidates.size(), DedupDecision::kRefer);
  if (ahead.empty()) {
    policy_.decide(lookup.candidates, lookup.decisions);
    return;
  }
  std::vector<DedupCandidate> all = lookup.candidates;
  for (const auto& other : ahead) {
    const auto& candidates = other->lookup->candidates;
    all.insert(all.end(), candidates.begin(), candidates.end());
  }
  policy_.decide(all, lookup.decisions);
}

// ---- Committing a batch. ----

Result<ChunkId> IngestPipeline::commit_chunk(const Batch& batch, std::size_t from,
                                             std::size_t candidate, DedupTally& tally) {
  const Piece& piece = batch.pieces[batch.next_piece];
  const Fingerprint& fingerprint = batch.fingerprints[batch.next_piece];
  const Lookup& lookup = *batch.lookup;
  const bool asked = !lookup.decisions.empty();
  const auto decision = asked ? lookup.decisions[candidate] : DedupDecision::kRefer;
  std::optional<ChunkId> stored = lookup.stored[batch.next_piece - from];
  bool again = stored && decision == DedupDecision::kStoreAgain;
  // A chunk found by the lookup moves only if the policy had the chunk stored again.
  if ((!stored || asked) && marks_.placed_after(fingerprint, lookup.mark)) {
    const auto found = index_.find_one(fingerprint);
    again = again && found == stored;
    stored = found;
  }
  if (stored && !again) {
    ++tally.kept_chunks;
    tally.kept_bytes += piece.bytes;
    if (is_pool(*stored)) {
      ++tally.kept_in_pool_chunks;
      tally.kept_in_pool_bytes += piece.bytes;
    }
    return *stored;
  }
  const bool shared = !again && decision == DedupDecision::kShare;
  const std::span data{batch.buffer.data.get() + piece.offset, piece.bytes};
  // Only copies in the pool are stored again.
  VARVE_TRY_ASSIGN(const ChunkId id, again || shared ? layout_.place_shared(fingerprint, data)
                                                     : layout_.place(fingerprint, data));
  ++placed_chunks_;
  marks_.add(fingerprint);
  if (again) {
    index_.replace(fingerprint, id);
  } else {
    index_.insert(fingerprint, id);
  }
  ++(again ? tally.again_chunks : tally.fresh_chunks);
  (again ? tally.again_bytes : tally.fresh_bytes) += piece.bytes;
  if (shared) {
    ++tally.shared_chunks;
    tally.shared_bytes += piece.bytes;
  }
  return id;
}

void IngestPipeline::count(const DedupTally& tally) {
  metrics_.new_chunks.add(tally.fresh_chunks);
  metrics_.duplicate_chunks.add(tally.kept_chunks);
  metrics_.again_chunks.add(tally.again_chunks);
  metrics_.stored_bytes.add(tally.fresh_bytes + tally.again_bytes);
  policy_.on_stored(tally);
}

Result<void> IngestPipeline::commit_batch(Batch& batch, std::span<const BatchPtr> ahead) {
  const std::size_t from = batch.next_piece;
  refresh(batch);
  decide(batch, ahead);
  std::vector<ChunkId> ids;
  std::size_t candidate = 0;
  DedupTally tally;
  Result<void> outcome;
  for (; batch.next_piece < batch.pieces.size(); ++batch.next_piece) {
    const Piece& piece = batch.pieces[batch.next_piece];
    if (piece.is_ready()) {
      ids.emplace_back();
      continue;
    }
    auto id = commit_chunk(batch, from, candidate++, tally);
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

// Takes the place of the committing thread, because an index is used by one thread at a time.
std::vector<std::optional<ChunkId>> IngestPipeline::find_stored(
    std::span<const Fingerprint> fingerprints) {
  std::vector<std::optional<ChunkId>> ids(fingerprints.size());
  {
    std::unique_lock lock(commit_mutex_);
    progress_.wait(lock, [&] { return !committing_; });
    committing_ = true;
    lock.unlock();
    index_.find(fingerprints, ids);
    lock.lock();
    committing_ = false;
    progress_.notify_all();
  }
  commit_ready();  // Batches that became ready meanwhile.
  return ids;
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
    // The pipeline tries the first batch at once: the reason for the commit outlives the error. So
    // the caller learns that a disk is still full.
  }
  commit_ready();
  const std::lock_guard lock(commit_mutex_);
  if (error_) return *error_;
  return {};
}

Result<void> IngestPipeline::wait_for_ticket(std::uint64_t ticket) {
  std::unique_lock lock(commit_mutex_);
  wanted_ = std::max(wanted_, ticket);
  if (committed_ < ticket && looked_up_ != committed_ && !committing_ && !error_) {
    // The first batch waits for more data. A task commits, because there may be more to commit than
    // the caller wants to wait for.
    ++tasks_;
    pool_.run([this] { commit_in_task(); });
  }
  progress_.wait(lock, [&] { return committed_ >= ticket || error_; });
  if (error_) return *error_;
  return {};
}

}  // namespace varve::ingest

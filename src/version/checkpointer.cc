// SPDX-License-Identifier: Apache-2.0
#include "version/checkpointer.h"

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/free_memory.h"
#include "base/log.h"

namespace varve::version {

namespace {
constexpr std::uint64_t kSealedEntryBytes = 512;
constexpr std::uint64_t kIndexEntryBytes = 48;
constexpr std::size_t kChangedMaxTight = 2048;
/// Interval of the background task without changes: the task looks after the reserve and repeats
/// failed early uploads.
constexpr std::chrono::hours kRest{1};

using Urgency = ContentStreams::Urgency;
}  // namespace

Checkpointer::Checkpointer(OpenState& state, ContentStreams& streams, StagingArea& staging,
                           OpenContents& contents, StagedIngest& ingest)
    : state_(state),
      streams_(streams),
      staging_(staging),
      contents_(contents),
      ingest_(ingest),
      index_entries_(state.parts.index->size()) {}

// ---- The first change, and recovery. ----

Result<void> Checkpointer::check_writable() {
  VARVE_TRY(state_.check_not_frozen());
  if (!state_.descriptor && !state_.stopping) {  // For the segment written by the version.
    VARVE_TRY_ASSIGN(auto share, state_.parts.descriptors->take("cannot change this open version"));
    state_.descriptor.emplace(std::move(share));
  }
  return wake_up();
}

// The overlay exists before the first change, hence before a chunk is located (docs/ORDERING.md
// O33).
Result<void> Checkpointer::wake_up() {
  if (!state_.overlay) {
    VARVE_TRY(state_.make_overlay());
    VARVE_TRY_ASSIGN(auto* root, state_.tree.get(kRootIno));
    if (!state_.parts.base) state_.tree.touch(*root);
  }
  start_background();
  return {};
}

void Checkpointer::start_background() {
  if ((state_.background && !rests_) || state_.stopping) return;
  rests_ = false;
  // Other programs may have filled the disk during the rest.
  if (state_.parts.space != nullptr) state_.parts.space->scan_again();
  next_checkpoint_ = std::chrono::steady_clock::now() + interval();
  recorded_bytes_ = stored_bytes();
  if (state_.background) {
    state_.wake_background();
  } else {
    state_.background = state_.parts.checkpoint_tasks->add([this] { return run_background(); });
  }
}

Result<void> Checkpointer::recover_root(const NewFile& root) {
  auto top = state_.tree.get(kRootIno);
  if (!top && top.error().code() != ErrorCode::kStale) return std::move(top).error();
  if (top && !(*top)->is_directory()) return damaged_overlay("its root is not a directory");
  if (top) return {};
  auto inode = std::make_unique<OpenInode>();
  inode->ino = kRootIno;
  inode->directory.parent = kRootIno;
  inode->mode = (root.mode & 07777) | S_IFDIR;
  inode->uid = root.uid;
  inode->gid = root.gid;
  inode->xattrs = root.xattrs;
  inode->mtime = inode->ctime = inode->atime = state_.info.opened_at;
  inode->content.clear_recipe();
  auto* const added = inode.get();
  state_.tree.add_clean(std::move(inode));
  if (state_.overlay || !added->xattrs.empty()) state_.tree.touch(*added);
  return {};
}

Result<void> Checkpointer::recover(const NewFile& root) {
  VARVE_TRY(state_.tree.load());
  state_.parts.dedup_policy->continue_from(state_.tree.counters().rewrite_counts());
  const Timestamp now = state_.parts.clock->now();
  const Timestamp changed = state_.tree.counters().changed_at();
  if (changed.seconds == 0 || changed > now) state_.tree.counters().set_changed_at(now);
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(recover_root(root));
    if (!state_.overlay) {
      return root.xattrs.empty() || state_.parts.base ? Result<void>() : wake_up();
    }
    VARVE_TRY(streams_.recover_tails());
    VARVE_TRY(staging_.recover());
    estimate_sealing();
    VARVE_TRY(streams_.finish_tails(Urgency::kIfAdmitted));
    if (staging_.has_queued() || streams_.has_tails()) start_background();
  }
  auto done = checkpoint(Extent::kAll);
  if (done || done.error().code() != ErrorCode::kNoSpace) return done;
  // The overlay keeps its contents, so the version can be read and dropped on a full disk.
  base::log(base::LogLevel::kWarning, "open version: " + done.error().message());
  return {};
}

// ---- One checkpoint. ----

// Encodes the record with the placed content. For a file being written, the placed content is the
// part before the chunks in flight; if nothing is in flight, the record holds the uncut tail too.
// For fsync(2), the checkpoint waits for the file: another file's bytes may have pushed the file's
// chunks into the pipeline.
Result<OpenTree::Changes::Record> Checkpointer::encode(OpenInode& inode, Extent extent) {
  OpenTree::Changes::Record record;
  record.ino = inode.ino;
  streams_.absorb(inode);
  if (inode.content.stream) {
    VARVE_TRY_ASSIGN(auto content, state_.pipeline.snapshot(inode.content.stream));
    if (extent == Extent::kAll && content.bytes() != inode.content.size) {
      VARVE_TRY_ASSIGN(content, state_.pipeline.settle(inode.content.stream));
    }
    record.bytes = encode_open_inode(inode, content.recipe);
    record.tail = std::move(content.tail);
  } else {
    record.bytes = encode_open_inode(inode);
  }
  if (inode.staging.is_staged()) staging_.sync_later(inode.ino);
  return record;
}

Result<Checkpointer::Taken> Checkpointer::take_changes(Extent extent) {
  Taken taken;
  const std::lock_guard lock(state_.mutex);
  contents_.drop_forgotten();
  taken.record_bytes = state_.record_bytes;
  VARVE_TRY(streams_.absorb_finished());
  VARVE_TRY_ASSIGN(taken.tree, state_.tree.take_changes(
                                   [&](OpenInode& inode) { return encode(inode, extent); }));
  taken.tree.numbers.changed_at = state_.parts.clock->now();
  taken.tree.numbers.rewrite_counts = state_.parts.dedup_policy->counts();
  // A stream with chunks in flight must be recorded again once the chunks have a place.
  for (const auto& record : taken.tree.records) {
    auto inode = record.bytes ? state_.tree.get(record.ino) : Result<OpenInode*>(nullptr);
    if (inode && *inode != nullptr && (*inode)->content.stream) state_.tree.touch(**inode);
  }
  taken.staging = staging_.take_changes();
  return taken;
}

Result<void> Checkpointer::store(const Taken& taken) {
  VARVE_TRY(state_.parts.layout->sync());
  VARVE_TRY(staging_.sync(taken.staging));
  if (taken.tree.names.empty() && taken.tree.records.empty()) return {};
  return state_.tree.commit(taken.tree);
}

Result<void> Checkpointer::checkpoint_once(Extent extent) {
  const std::lock_guard one(state_.checkpoint_mutex);
  VARVE_TRY(state_.pipeline.drain());
  VARVE_TRY_ASSIGN(const auto taken, take_changes(extent));
  auto stored = store(taken);
  const std::lock_guard lock(state_.mutex);
  if (!stored) {
    state_.tree.restore(taken.tree);
    staging_.restore(taken.staging);
    return stored;
  }
  state_.tree.settle(taken.tree);
  state_.record_bytes -= taken.record_bytes;
  estimate_sealing();
  staging_.settle(taken.staging);
  return {};
}

Result<void> Checkpointer::checkpoint(Extent extent) {
  auto* const space = state_.parts.space;
  auto done = checkpoint_once(extent);
  const bool is_full = !done && done.error().code() == ErrorCode::kNoSpace;
  // Another program filled the disk: the reserve exists for a full disk.
  if (is_full && space != nullptr && space->give_up_reserve()) {
    done = checkpoint_once(extent);
    if (done) space->renew_reserve();
  }
  if (done) state_.parts.ingest_metrics->checkpoints.add(1);
  if (done && state_.parts.on_checkpoint) state_.parts.on_checkpoint();
  return done;
}

Result<void> Checkpointer::relieve() {
  {
    const std::lock_guard lock(state_.mutex);
    // On a nearly full disk, a checkpoint must stay small.
    const bool tight = state_.parts.space != nullptr && state_.parts.space->is_tight();
    if (state_.tree.changed() < (tight ? kChangedMaxTight : OpenTree::kChangedMax)) {
      state_.tree.evict();
      return {};
    }
  }
  return checkpoint(Extent::kAtRest);
}

// ---- Space. ----

std::uint64_t Checkpointer::unwritten_bytes() const {
  return state_.pipeline.held_bytes() + state_.parts.layout->unwritten_bytes() + staging_.bytes() +
         state_.record_bytes;
}

void Checkpointer::store_accepted() {
  static_cast<void>(state_.pipeline.drain());
  static_cast<void>(state_.parts.layout->flush());
}

Checkpointer::Unsaved Checkpointer::unsaved() const {
  const std::lock_guard lock(state_.mutex);
  return {state_.tree.changed_inodes(), unwritten_bytes() - state_.record_bytes};
}

// Estimates the space for the directory nodes and the manifest of the inodes made in the version,
// and for the index of the next version's window.
void Checkpointer::estimate_sealing() {
  const std::uint64_t made = state_.tree.counters().made();
  const std::uint64_t placed = state_.pipeline.placed_chunks();
  sealing_bytes_ = made == 0 && placed == 0
                       ? 0
                       : kSealedEntryBytes * made + kIndexEntryBytes * (placed + index_entries_);
}

// ---- The background task. ----

Result<void> Checkpointer::checkpoint_in_turn() {
  auto* const space = state_.parts.space;
  if (space != nullptr) space->scan_again();
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(streams_.finish_tails(Urgency::kIfAdmitted));
  }
  VARVE_TRY(checkpoint(Extent::kAtRest));
  if (state_.pipeline.drop_spare_buffers()) base::return_free_memory();
  if (space != nullptr) space->keep_reserve();
  return {};
}

std::uint64_t Checkpointer::stored_bytes() const { return state_.parts.layout->placed().stored; }

bool Checkpointer::is_grown() const {
  const auto bytes = state_.parts.checkpoint_bytes;
  return bytes != 0 && stored_bytes() >= recorded_bytes_ + bytes;
}

std::chrono::milliseconds Checkpointer::interval() const {
  return std::chrono::milliseconds(state_.parts.checkpoint_interval_ms);
}

// The caller holds OpenState::mutex. A change since the last checkpoint, or an event that the next
// checkpoint has to notice, keeps the version busy.
bool Checkpointer::is_idle() const {
  return state_.tree.changed() == 0 && state_.writers == 0 && !staging_.has_queued() &&
         !streams_.has_tails() && !contents_.waits_for_removed() && unwritten_bytes() == 0;
}

base::RecurringTasks::Next Checkpointer::rest_if_idle() {
  const std::lock_guard lock(state_.mutex);
  rests_ = is_idle();
  if (rests_) next_checkpoint_ = std::chrono::steady_clock::now() + kRest;
  return {next_checkpoint_};
}

base::RecurringTasks::Next Checkpointer::run_background() {
  const auto is_due = [&] { return std::chrono::steady_clock::now() >= next_checkpoint_; };
  {
    const std::lock_guard lock(state_.mutex);
    if (rests_ && !is_idle()) {  // Changed by an end of use, without start_background().
      rests_ = false;
      next_checkpoint_ = std::chrono::steady_clock::now() + interval();
    }
    if (state_.stopping || (!staging_.has_queued() && !is_grown() && !is_due())) {
      return {next_checkpoint_};
    }
    rests_ = false;
  }
  auto done = ingest_.ingest_all();
  if (is_grown() || is_due()) {
    recorded_bytes_ = stored_bytes();
    // The failed cut of a file must not prevent the checkpoint of all other files.
    auto written = checkpoint_in_turn();
    if (done) done = std::move(written);
    next_checkpoint_ = std::chrono::steady_clock::now() + interval();
  }
  if (done) return rest_if_idle();
  base::log(base::LogLevel::kError, "open version: " + done.error().message());
  next_checkpoint_ = std::chrono::steady_clock::now() + interval();
  return {next_checkpoint_, false};
}

void Checkpointer::stop() {
  std::shared_ptr<base::RecurringTasks::Task> task;
  {
    const std::lock_guard lock(state_.mutex);
    state_.stopping = true;
    task = std::exchange(state_.background, nullptr);
  }
  if (task) state_.parts.checkpoint_tasks->remove(*task);
  // A handle may keep the version alive while the next version places chunks.
  state_.pipeline.give_up();
  const std::lock_guard lock(state_.mutex);
  state_.descriptor.reset();
}

// ---- Freezing. ----

// The content of files open for writing cannot change any more: check_writable() refuses.
Result<void> Checkpointer::end_writing() {
  return state_.tree.for_each_in_memory([&](OpenInode& inode) -> Result<void> {
    if (inode.writers == 0) return {};
    if (inode.staging.is_staged() && inode.nlink != 0) staging_.queue(inode.ino);
    return streams_.finish(inode);
  });
}

Result<void> Checkpointer::freeze_to_drop() {
  const std::lock_guard lock(state_.mutex);
  if (state_.writers != 0) {
    return Error(ErrorCode::kBusy,
                 "files of the version are open for writing; close them, or wait for them with "
                 "`varve seal --wait`");
  }
  if (state_.frozen) return Error(ErrorCode::kBusy, "the version is being sealed already");
  state_.frozen = true;
  return {};
}

Result<void> Checkpointer::freeze(SealWriters writers) {
  {
    const std::lock_guard lock(state_.mutex);
    if (state_.writers != 0 && writers == SealWriters::kRefuse) {
      return Error(ErrorCode::kBusy,
                   "files of the version are open for writing; close them, or wait for them with "
                   "`varve seal --wait`, or cut them off with `varve seal --force`");
    }
    if (state_.frozen) return Error(ErrorCode::kBusy, "the version is being sealed already");
    state_.frozen = true;
    if (auto ended = end_writing(); !ended) {
      state_.frozen = false;
      return ended;
    }
  }
  auto rested = come_to_rest();
  if (!rested) thaw();
  return rested;
}

Result<void> Checkpointer::come_to_rest() {
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(wake_up());
    if (state_.overlay) state_.overlay->permit_spare_texts();
  }
  VARVE_TRY(ingest_.ingest_all());
  {
    const std::lock_guard lock(state_.mutex);
    VARVE_TRY(streams_.finish_tails(Urgency::kNow));
  }
  return checkpoint(Extent::kAll);
}

void Checkpointer::thaw() {
  const std::lock_guard lock(state_.mutex);
  state_.frozen = false;
}

}  // namespace varve::version

// SPDX-License-Identifier: Apache-2.0
// Makes an open version durable, and does its work in the background.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/log.h"
#include "version/open_version.h"

namespace varve::version {

namespace {
constexpr std::uint64_t kSealedEntryBytes = 512;
constexpr std::uint64_t kIndexEntryBytes = 24;
constexpr std::uint64_t kTailBytesMax = 128U << 10;
constexpr std::size_t kChangedMaxTight = 2048;
}  // namespace

// The record holds the content that has its place by now. For a file being written, this is the
// part before the chunks in flight, with the uncut rest beside it if nothing is in flight. For
// fsync(2), the checkpoint waits for the file: another file's bytes may have pushed its chunks on
// their way.
Result<OpenTree::Changes::Record> OpenVersion::encode(OpenInode& inode, Extent extent) {
  OpenTree::Changes::Record record;
  record.ino = inode.ino;
  absorb(inode);
  if (inode.stream) {
    VARVE_TRY_ASSIGN(auto content, pipeline_.snapshot(inode.stream));
    if (extent == Extent::kAll && content.bytes() != inode.size) {
      VARVE_TRY_ASSIGN(content, pipeline_.settle(inode.stream));
    }
    record.bytes = encode_open_inode(inode, content.recipe);
    record.tail = std::move(content.tail);
  } else {
    record.bytes = encode_open_inode(inode);
  }
  if (inode.staging != 0) staged_unsynced_.push_back(inode.ino);
  return record;
}

Result<void> OpenVersion::checkpoint(Extent extent) {
  auto done = checkpoint_once(extent);
  if (done || done.error().code() != ErrorCode::kNoSpace || parts_.space == nullptr) return done;
  // Another program filled the disk: the reserve is kept for this.
  if (parts_.space->give_up_reserve()) done = checkpoint_once(extent);
  return done;
}

// Estimates the space for the directory nodes and the manifest of the inodes made here, and for the
// index of the next version's window.
void OpenVersion::estimate_sealing() {
  const std::uint64_t made = tree_.made();
  const std::uint64_t placed = pipeline_.placed_chunks();
  sealing_bytes_ = made == 0 && placed == 0
                       ? 0
                       : kSealedEntryBytes * made + kIndexEntryBytes * (placed + index_entries_);
}

// The overlay holds a recovered tail until its chunks are stored, so there is no hurry to cut it;
// but a seal needs it cut.
Result<void> OpenVersion::finish_tails(Urgency urgency) {
  while (!waiting_tails_.empty()) {
    const auto found = tree_.get(waiting_tails_.back());
    if (found && (*found)->stream && !(*found)->stream_finished && (*found)->writers == 0) {
      if (urgency == Urgency::kIfAdmitted && !admit(kTailBytesMax)) return {};
      VARVE_TRY(finish_stream(**found));
    }
    waiting_tails_.pop_back();
  }
  return {};
}

OpenVersion::Unsaved OpenVersion::unsaved() const {
  const std::lock_guard lock(mutex_);
  return {tree_.changed_inodes(), unwritten_bytes() - record_bytes_};
}

Result<void> OpenVersion::checkpoint_once(Extent extent) {
  const std::lock_guard one(checkpoint_mutex_);
  VARVE_TRY(pipeline_.drain());
  OpenTree::Changes changes;
  std::vector<std::string> obsolete;
  std::vector<std::pair<Ino, std::uint64_t>> to_sync;  // With the generations.
  std::uint64_t record_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    drop_forgotten();
    record_bytes = record_bytes_;
    std::vector<Ino> still_finishing;
    for (const Ino ino : finishing_) {
      auto inode = tree_.get(ino);
      if (!inode) continue;
      const auto& stream = (*inode)->stream;
      // Finishes it again, in case the spilled tail could not be read back the first time.
      if (stream && (*inode)->stream_finished) VARVE_TRY(pipeline_.finish(stream));
      absorb(**inode);
      if (stream) still_finishing.push_back(ino);
    }
    finishing_ = std::move(still_finishing);
    VARVE_TRY_ASSIGN(changes,
                     tree_.take_changes([&](OpenInode& inode) { return encode(inode, extent); }));
    changes.changed_at = parts_.clock->now();
    // A stream with chunks in flight must be recorded again once they have their place.
    for (const auto& record : changes.records) {
      auto inode = record.bytes ? tree_.get(record.ino) : Result<OpenInode*>(nullptr);
      if (inode && *inode != nullptr && (*inode)->stream) tree_.touch(**inode);
    }
    for (const Ino ino : std::exchange(staged_unsynced_, {})) {
      const auto inode = tree_.get(ino);
      if (inode && (*inode)->staging != 0) to_sync.emplace_back(ino, (*inode)->staging);
    }
    obsolete = std::exchange(obsolete_staging_, {});
  }
  const auto store = [&]() -> Result<void> {
    VARVE_TRY(parts_.layout->sync());
    for (const auto& [ino, generation] : to_sync) VARVE_TRY(sync_staging(ino, generation));
    if (!to_sync.empty()) VARVE_TRY(parts_.files->sync_directory(files_directory_));
    if (changes.names.empty() && changes.records.empty()) return {};
    return tree_.commit(changes);
  };
  auto stored = store();
  const std::lock_guard lock(mutex_);
  if (!stored) {
    tree_.restore(changes);
    for (const auto& staged : to_sync) staged_unsynced_.push_back(staged.first);
    obsolete_staging_.insert(obsolete_staging_.end(), obsolete.begin(), obsolete.end());
    return stored;
  }
  tree_.settle(changes);
  record_bytes_ -= record_bytes;
  estimate_sealing();
  for (const auto& path : obsolete) static_cast<void>(parts_.files->remove(path));
  return {};
}

// Once the kernel has failed to write a page back, it forgets the page, and the next sync succeeds.
// So the inode remembers a failure as long as the file has that content.
Result<void> OpenVersion::sync_staging(Ino ino, std::uint64_t generation) {
  {
    const std::lock_guard lock(mutex_);
    const auto inode = tree_.get(ino);
    // The file may be cut in the meantime: the record to be committed names it nevertheless.
    if (inode && (*inode)->staging == generation) VARVE_TRY(check_staging(**inode));
  }
  VARVE_TRY_ASSIGN(const auto file,
                   parts_.files->open(staging_path(ino, generation), io::OpenMode::kReadWrite));
  auto synced = file->sync();
  if (synced) return {};
  const std::lock_guard lock(mutex_);
  const auto inode = tree_.get(ino);
  if (inode && (*inode)->staging == generation) (*inode)->staging_lost = true;
  return synced;
}

Result<void> OpenVersion::check_staging(const OpenInode& inode) {
  if (!inode.staging_lost) return {};
  return Error(ErrorCode::kIo,
               fmt::format("the disk failed while it took what was written to the file with inode "
                           "number {}; write that file again, or remove it",
                           inode.ino),
               EIO);
}

// Bounds the memory for changes.
Result<void> OpenVersion::relieve() {
  {
    const std::lock_guard lock(mutex_);
    // On a disk that is nearly full, a checkpoint must stay small.
    const bool tight = parts_.space != nullptr && parts_.space->is_tight();
    if (tree_.changed() < (tight ? kChangedMaxTight : OpenTree::kChangedMax)) {
      tree_.evict();
      return {};
    }
  }
  return checkpoint(Extent::kAtRest);
}

Result<void> OpenVersion::checkpoint_in_turn() {
  if (parts_.space != nullptr) parts_.space->scan_again();
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY(finish_tails(Urgency::kIfAdmitted));
  }
  VARVE_TRY(checkpoint(Extent::kAtRest));
  if (parts_.space != nullptr) parts_.space->keep_reserve();
  return {};
}

void OpenVersion::background() {
  const auto interval = std::chrono::milliseconds(parts_.checkpoint_interval_ms);
  auto next = std::chrono::steady_clock::now() + interval;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_until(lock, next, [&] { return stopping_ || !staged_.empty(); });
    if (stopping_) return;
    lock.unlock();
    auto done = ingest_all_staged();
    if (std::chrono::steady_clock::now() >= next) {
      // A file that cannot be cut must not keep the others from being durable.
      auto written = checkpoint_in_turn();
      if (done) done = std::move(written);
    }
    if (!done) {
      base::log(base::LogLevel::kError, "open version: " + done.error().message());
      next = std::chrono::steady_clock::now() + interval;
    }
    if (std::chrono::steady_clock::now() >= next) {
      next = std::chrono::steady_clock::now() + interval;
    }
    lock.lock();
    if (!done) wake_.wait_until(lock, next, [&] { return stopping_; });
  }
}

// The content of these files cannot change any more: check_writable() refuses.
Result<void> OpenVersion::end_writing() {
  return tree_.for_each_in_memory([&](OpenInode& inode) -> Result<void> {
    if (inode.writers == 0) return {};
    if (inode.staging != 0 && inode.nlink != 0) staged_.push_back(inode.ino);
    return finish_stream(inode);
  });
}

Result<void> OpenVersion::freeze_to_drop() {
  const std::lock_guard lock(mutex_);
  if (writers_ != 0) {
    return Error(ErrorCode::kBusy,
                 "files of the version are open for writing; close them, or wait for them with "
                 "`varve seal --wait`",
                 EBUSY);
  }
  if (frozen_) return Error(ErrorCode::kBusy, "the version is being sealed already", EBUSY);
  frozen_ = true;
  return {};
}

Result<void> OpenVersion::freeze(SealWriters writers) {
  {
    const std::lock_guard lock(mutex_);
    if (writers_ != 0 && writers == SealWriters::kRefuse) {
      return Error(ErrorCode::kBusy,
                   "files of the version are open for writing; close them, or wait for them with "
                   "`varve seal --wait`, or cut them off with `varve seal --force`",
                   EBUSY);
    }
    if (frozen_) return Error(ErrorCode::kBusy, "the version is being sealed already", EBUSY);
    frozen_ = true;
    if (auto ended = end_writing(); !ended) {
      frozen_ = false;
      return ended;
    }
  }
  const auto rest = [&]() -> Result<void> {
    {
      const std::lock_guard lock(mutex_);
      VARVE_TRY(wake_up());
    }
    VARVE_TRY(ingest_all_staged());
    {
      const std::lock_guard lock(mutex_);
      VARVE_TRY(finish_tails(Urgency::kNow));
    }
    return checkpoint(Extent::kAll);
  };
  auto rested = rest();
  if (!rested) thaw();
  return rested;
}

void OpenVersion::thaw() {
  const std::lock_guard lock(mutex_);
  frozen_ = false;
}

}  // namespace varve::version

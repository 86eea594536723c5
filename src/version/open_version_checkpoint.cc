// SPDX-License-Identifier: Apache-2.0
// Making an open version durable, and the work that goes on behind it.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/log.h"
#include "version/open_version.h"

namespace varve::version {

// The record holds what has its place by now: of a file being written, the part before the
// chunks in flight, with the uncut rest beside it where nothing is in flight. For fsync(2)
// the file is waited for: another file's bytes may have pushed its chunks on their way.
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
  const std::lock_guard one(checkpoint_mutex_);
  VARVE_TRY(pipeline_.drain());
  OpenTree::Changes changes;
  std::vector<std::string> obsolete;
  std::vector<std::pair<Ino, std::uint64_t>> to_sync;  // With the generation.
  {
    const std::lock_guard lock(mutex_);
    drop_forgotten();
    std::vector<Ino> still_finishing;
    for (const Ino ino : finishing_) {
      auto inode = tree_.get(ino);
      if (!inode) continue;
      const auto& stream = (*inode)->stream;
      // Again, in case what was spilled could not be read back at the first time.
      if (stream && (*inode)->stream_finished) VARVE_TRY(pipeline_.finish(stream));
      absorb(**inode);
      if (stream) still_finishing.push_back(ino);
    }
    finishing_ = std::move(still_finishing);
    VARVE_TRY_ASSIGN(changes,
                     tree_.take_changes([&](OpenInode& inode) { return encode(inode, extent); }));
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
  for (const auto& path : obsolete) static_cast<void>(parts_.files->remove(path));
  return {};
}

// Once the kernel has failed to write a page back it forgets the page, and the next sync
// succeeds. So a failure is remembered as long as the file has that content.
Result<void> OpenVersion::sync_staging(Ino ino, std::uint64_t generation) {
  {
    const std::lock_guard lock(mutex_);
    const auto inode = tree_.get(ino);
    // Cut in the meantime: the record that is to be committed names the file nevertheless.
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
                           "number {}; write that file anew, or remove it",
                           inode.ino),
               EIO);
}

// Keeps the memory for changes bounded.
Result<void> OpenVersion::relieve() {
  {
    const std::lock_guard lock(mutex_);
    if (tree_.changed() < OpenTree::kChangedMax) {
      tree_.evict();
      return {};
    }
  }
  return checkpoint(Extent::kAtRest);
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
    if (done && std::chrono::steady_clock::now() >= next) done = checkpoint(Extent::kAtRest);
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

Result<void> OpenVersion::freeze() {
  {
    const std::lock_guard lock(mutex_);
    if (writers_ != 0) {
      return Error(ErrorCode::kBusy,
                   "files of the version are open for writing; close them, or wait for them with "
                   "`varve seal --wait`",
                   EBUSY);
    }
    if (frozen_) return Error(ErrorCode::kBusy, "the version is being sealed already", EBUSY);
    frozen_ = true;
  }
  const auto rest = [&]() -> Result<void> {
    VARVE_TRY(ingest_all_staged());
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

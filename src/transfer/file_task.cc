// SPDX-License-Identifier: Apache-2.0
#include "transfer/file_task.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "transfer/file_metadata.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {

void RestoreShared::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  failed_ = true;
}

void RestoreShared::add_error(const std::string& path, const Error& error) {
  if (ends_transfer(error)) {
    fail(Error(error).with_context(path));
  } else {
    problems.add(path, error.message());
  }
}

Result<void> RestoreShared::outcome() {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  return {};
}

void RestoreShared::finish(const FileRef& file, const SealedEntry& entry, const std::string& path,
                           bool clean) {
  auto xattrs = version.xattrs(entry.rank);
  if (!xattrs) problems.add(path, "extended attributes: " + xattrs.error().message());
  if (clean && xattrs) remove_other_xattrs(file, *xattrs);
  Attributes attributes = entry.attributes;
  if (!owners) {
    attributes.uid = kNoOwner;
    attributes.gid = kNoOwner;
  }
  apply_metadata(file, attributes, xattrs ? *xattrs : Xattrs(), path, problems);
}

FileTask::FileTask(FilePlan plan, RestoreShared& shared, WriterPool& pool)
    : plan_(std::move(plan)), shared_(shared), pool_(pool), written_end_(plan_.resume_offset) {
  made_ = plan_.resume_offset > 0;
}

FileTask::~FileTask() {
  if (state_ == kPending) remove_incomplete();
}

void FileTask::remove_incomplete() {
  if (!made_ || keep_partial_) return;
  const std::string& name = plan_.temporary.empty() ? plan_.name : plan_.temporary;
  (void)::unlinkat(plan_.directory->get(), name.c_str(), 0);
}

Result<void> FileTask::put(ByteRange range, SharedBytes data) {
  release_held();
  held_ = Piece{range, std::move(data)};
  if (shared_.failed()) return Error(ErrorCode::kInterrupted, "interrupted");
  return {};
}

Result<void> FileTask::skip(ByteRange) { return {}; }

void FileTask::submit(Piece piece) {
  pending_.fetch_add(1);
  const std::size_t bytes = piece.data.bytes.size();
  pool_.run(bytes, [self = shared_from_this(), piece = std::move(piece)] {
    self->write(piece);
    self->release();
  });
}

Result<void> FileTask::sync() {
  const std::lock_guard lock(mutex_);
  if (fd_.valid() && ::fdatasync(fd_.get()) != 0) return system_error("sync", errno);
  return {};
}

void FileTask::release_held() {
  if (held_) submit(*std::exchange(held_, std::nullopt));
}

void FileTask::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }
  finish({});
}

void FileTask::finish(const UnreadableData& lost) {
  lost_ = lost;
  // The same task writes the last piece and ends the file, so a small file is made without a switch
  // between threads.
  const std::size_t bytes = held_ ? held_->data.bytes.size() : 0;
  pool_.run(bytes, [self = shared_from_this(), piece = std::exchange(held_, std::nullopt)] {
    if (piece) self->write(*piece);
    self->release();
  });
}

void FileTask::write(const Piece& piece) {
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    if (auto opened = open(); !opened && !error_) error_ = std::move(opened).error();
    if (error_) return;
    fd = fd_.get();
    written_end_ = std::max(written_end_, piece.range.end);
  }
  auto written = [&] {
    const std::lock_guard lock(writing_);
    return write_all(fd, piece.data.bytes, piece.range.begin);
  }();
  if (written) return;
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(written).error();
}

Result<void> FileTask::open() {
  if (std::exchange(opened_, true)) return {};
  const std::string& name = plan_.temporary.empty() ? plan_.name : plan_.temporary;
  int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  if (plan_.resume_offset == 0) flags |= O_CREAT | O_EXCL;
  fd_ = base::UniqueFd(::openat(plan_.directory->get(), name.c_str(), flags, 0600));
  if (!fd_.valid()) return creation_error("create", errno);
  made_ = true;
  return {};
}

void FileTask::release() {
  if (pending_.fetch_sub(1) != 1) return;
  auto completed = complete();
  if (!completed) shared_.add_error(plan_.path, completed.error());
  end(completed ? kMade : kFailed);
}

/// Sets the metadata, then gives the file its final name. The last holder of the file calls
/// complete().
Result<void> FileTask::complete() {
  const std::lock_guard lock(mutex_);
  if (!error_) {
    if (auto opened = open(); !opened) error_ = std::move(opened).error();
  }
  if (error_) return *error_;
  const std::uint64_t size = plan_.entry.attributes.size;
  if ((written_end_ != size || plan_.resume_offset > 0) &&
      ::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
    return system_error("ftruncate", errno);
  }
  if (lost_.ranges > 0) {
    if (plan_.replaces) {
      return Error(ErrorCode::kCorrupt,
                   damage_text(lost_) + "; kept the existing file: " + lost_.reason);
    }
    shared_.problems.add(plan_.path, damage());
  }
  shared_.finish(FileRef::opened(fd_.get()), plan_.entry, plan_.path, plan_.inherits);
  // The time then differs from the version's time, so the next restore tries the file again.
  if (lost_.ranges > 0) (void)::futimens(fd_.get(), nullptr);
  // Network filesystems report failed writes here.
  if (::close(fd_.release()) != 0) return system_error("close", errno);
  if (!plan_.temporary.empty()) VARVE_TRY(give_name());
  shared_.entries.fetch_add(1, std::memory_order_relaxed);
  return {};
}

/// Renames the complete file. A new file must not replace an entry unknown to the walk: on a file
/// system with case folding, the entry is another file of the version.
Result<void> FileTask::give_name() {
  const int directory = plan_.directory->get();
  const char* const from = plan_.temporary.c_str();
  const char* const to = plan_.name.c_str();
  if (!plan_.replaces) {
    if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return {};
    struct stat there {};
    const bool is_unknown = errno == EINVAL || errno == ENOSYS || errno == ENOTSUP;
    if (!is_unknown) return creation_error("rename", errno);
    if (::fstatat(directory, to, &there, AT_SYMLINK_NOFOLLOW) == 0) {
      return creation_error("rename", EEXIST);
    }
  }
  if (::renameat(directory, from, directory, to) != 0) return system_error("rename", errno);
  return {};
}

std::string FileTask::damage() const {
  return lost_.ranges == 0 ? "" : damage_text(lost_) + " left as holes: " + lost_.reason;
}

void FileTask::end(State state) {
  if (state == kFailed) {
    fd_.reset();
    remove_incomplete();
  }
  // A link to the file may wait for long, and must hold no descriptor of the directory.
  plan_.end.reset();
  plan_.directory.reset();
  state_ = state;
  state_.notify_all();
}

bool FileTask::wait() {
  pool_.flush();
  state_.wait(kPending);
  return state_ == kMade;
}

}  // namespace varve::transfer

// SPDX-License-Identifier: Apache-2.0
#include "version/open_version_file.h"

#include <cerrno>
#include <mutex>

#include "version/sealed_version.h"

namespace varve::version {

OpenVersionFile::~OpenVersionFile() { version_->release(ino_, writer_); }

Result<void> OpenVersionFile::write(std::uint64_t offset, std::span<const std::byte> data) {
  bool consolidate = false;
  {
    std::unique_lock lock(version_->mutex_);
    VARVE_TRY_ASSIGN(auto* inode, writable(lock));
    VARVE_TRY(version_->write(*inode, offset, data));
    consolidate = version_->wants_consolidating(*inode);
  }
  if (consolidate) version_->consolidate(ino_);
  return {};
}

// The caller holds the lock; the function may release it for a while.
Result<OpenInode*> OpenVersionFile::writable(std::unique_lock<std::mutex>& lock) {
  if (!writer_) return Error(ErrorCode::kInvalid, "not open for writing", EBADF);
  VARVE_TRY(version_->check_writable());
  return version_->content_inode(lock, ino_);
}

Result<std::size_t> OpenVersionFile::read(std::uint64_t offset, std::span<std::byte> out) {
  return version_->read(ino_, offset, out);
}

Result<std::uint64_t> OpenVersionFile::seek_data(std::uint64_t offset) {
  return version_->seek(ino_, offset, true);
}

Result<std::uint64_t> OpenVersionFile::seek_hole(std::uint64_t offset) {
  return version_->seek(ino_, offset, false);
}

Result<void> OpenVersionFile::allocate(std::uint64_t offset, std::uint64_t bytes,
                                       AllocateMode mode) {
  if (bytes == 0) return Error(ErrorCode::kInvalid, "no bytes are asked for", EINVAL);
  if (offset > kFileBytesMax || bytes > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB", EFBIG);
  }
  const std::uint64_t end = offset + bytes;
  const bool grows = mode == AllocateMode::kExtend || mode == AllocateMode::kZeroRange;
  const bool takes_space = mode == AllocateMode::kExtend || mode == AllocateMode::kKeepSize;
  std::unique_lock lock(version_->mutex_);
  VARVE_TRY_ASSIGN(auto* inode, writable(lock));
  if (takes_space) {
    VARVE_TRY(version_->has_room(bytes));
  } else {
    VARVE_TRY(version_->punch(*inode, offset, end));
  }
  if (grows && end > inode->size) VARVE_TRY(version_->truncate(*inode, end));
  if (mode == AllocateMode::kKeepSize) return {};
  inode->mtime = inode->ctime = version_->parts_.clock->now();
  version_->tree_.touch(*inode);
  return {};
}

Result<std::uint64_t> OpenVersionFile::clone_range(FileReader& source, std::uint64_t source_offset,
                                                   std::uint64_t offset, std::uint64_t bytes) {
  auto* const sealed = dynamic_cast<SealedFile*>(&source);
  if (sealed == nullptr || sealed->version().info().series != version_->info().series) {
    return Error(ErrorCode::kOtherVersion, "only versions of one series share data", EXDEV);
  }
  const std::shared_lock references(version_->references_mutex_);
  VARVE_TRY_ASSIGN(auto recipe, version_->clonable(sealed->recipe()));
  std::unique_lock lock(version_->mutex_);
  VARVE_TRY_ASSIGN(auto* inode, writable(lock));
  return version_->clone_range(*inode, offset, std::move(recipe), source_offset, bytes);
}

Result<std::uint64_t> OpenVersionFile::clone_range(OpenFile& source, std::uint64_t source_offset,
                                                   std::uint64_t offset, std::uint64_t bytes) {
  auto* const other = dynamic_cast<OpenVersionFile*>(&source);
  if (other == nullptr || other->version_ != version_) {
    return Error(ErrorCode::kOtherVersion, "only versions of one series share data", EXDEV);
  }
  VARVE_TRY(version_->ingest_staged(other->ino_, OpenVersion::Users::kNone));
  const std::shared_lock references(version_->references_mutex_);
  std::unique_lock lock(version_->mutex_);
  VARVE_TRY_ASSIGN(auto recipe, version_->recipe_at_rest(other->ino_));
  VARVE_TRY_ASSIGN(auto* inode, writable(lock));
  return version_->clone_range(*inode, offset, std::move(recipe), source_offset, bytes);
}

Result<void> OpenVersionFile::flush() {
  if (!writer_) return {};
  return version_->pipeline_.status();
}

Result<void> OpenVersionFile::sync() { return version_->checkpoint(OpenVersion::Extent::kAll); }

}  // namespace varve::version

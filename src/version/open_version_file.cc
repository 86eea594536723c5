// SPDX-License-Identifier: Apache-2.0
#include "version/open_version_file.h"

#include <shared_mutex>

#include "version/sealed_version.h"

namespace varve::version {

OpenVersionFile::~OpenVersionFile() { parts_.contents.release(ino_, writer_); }

Result<OpenInode*> OpenVersionFile::writable(std::unique_lock<std::mutex>& lock) {
  if (!writer_) return Error(ErrorCode::kBadHandle, "not open for writing");
  VARVE_TRY(parts_.checkpointer.check_writable());
  return parts_.contents.wait_until_uncut(lock, ino_);
}

SeriesId OpenVersionFile::series() const {
  const std::lock_guard lock(parts_.state.mutex);
  return parts_.state.info.series;
}

Result<void> OpenVersionFile::write(std::uint64_t offset, std::span<const std::byte> data) {
  bool consolidate = false;
  if (auto* const space = parts_.state.parts.space) VARVE_TRY(space->before_write(data.size()));
  {
    std::unique_lock lock(parts_.state.mutex);
    VARVE_TRY_ASSIGN(auto* inode, writable(lock));
    VARVE_TRY(parts_.contents.write(*inode, offset, data));
    consolidate = StagedIngest::wants_consolidating(*inode);
    if (parts_.state.count_written(data.size())) parts_.state.wake_background();
  }
  if (consolidate) parts_.ingest.consolidate(ino_);
  return {};
}

Result<std::size_t> OpenVersionFile::read(std::uint64_t offset, std::span<std::byte> out) {
  return parts_.contents.read(ino_, offset, out);
}

Result<std::uint64_t> OpenVersionFile::seek_data(std::uint64_t offset) {
  return parts_.contents.seek(ino_, offset, SeekFor::kData);
}

Result<std::uint64_t> OpenVersionFile::seek_hole(std::uint64_t offset) {
  return parts_.contents.seek(ino_, offset, SeekFor::kHole);
}

Result<void> OpenVersionFile::allocate(std::uint64_t offset, std::uint64_t bytes,
                                       AllocateMode mode) {
  if (bytes == 0) return Error(ErrorCode::kInvalid, "the range has no bytes");
  if (offset > kFileBytesMax || bytes > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB");
  }
  const std::uint64_t end = offset + bytes;
  const bool grows = mode == AllocateMode::kExtend || mode == AllocateMode::kZeroRange;
  const bool takes_space = mode == AllocateMode::kExtend || mode == AllocateMode::kKeepSize;
  std::unique_lock lock(parts_.state.mutex);
  VARVE_TRY_ASSIGN(auto* inode, writable(lock));
  if (takes_space) {
    VARVE_TRY(parts_.state.has_room(bytes));
  } else {
    VARVE_TRY(parts_.contents.punch(*inode, offset, end));
  }
  if (grows && end > inode->content.size) VARVE_TRY(parts_.contents.truncate(*inode, end));
  if (mode == AllocateMode::kKeepSize) return {};
  inode->mtime = inode->ctime = parts_.state.parts.clock->now();
  parts_.state.tree.touch(*inode);
  return {};
}

Result<std::uint64_t> OpenVersionFile::clone_range(FileReader& source, std::uint64_t source_offset,
                                                   std::uint64_t offset, std::uint64_t bytes) {
  auto* const sealed = dynamic_cast<SealedFile*>(&source);
  if (sealed == nullptr || sealed->version().info().series != series()) {
    return Error(ErrorCode::kOtherVersion, "only versions of the same series can share data");
  }
  const std::shared_lock references(parts_.state.references_mutex);
  VARVE_TRY_ASSIGN(auto recipe, parts_.clones.sealed(sealed->recipe()));
  std::unique_lock lock(parts_.state.mutex);
  VARVE_TRY_ASSIGN(auto* inode, writable(lock));
  return parts_.contents.clone_range(*inode, std::move(recipe), {offset, source_offset, bytes});
}

Result<std::uint64_t> OpenVersionFile::clone_range(OpenFile& source, std::uint64_t source_offset,
                                                   std::uint64_t offset, std::uint64_t bytes) {
  auto* const other = dynamic_cast<OpenVersionFile*>(&source);
  if (other == nullptr || other->version_ != version_) {
    return Error(ErrorCode::kOtherVersion, "only versions of the same series can share data");
  }
  VARVE_TRY(parts_.ingest.ingest(other->ino_, StagedIngest::Users::kNone));
  const std::shared_lock references(parts_.state.references_mutex);
  std::unique_lock lock(parts_.state.mutex);
  VARVE_TRY_ASSIGN(auto recipe, parts_.clones.at_rest(other->ino_));
  VARVE_TRY_ASSIGN(auto* inode, writable(lock));
  return parts_.contents.clone_range(*inode, std::move(recipe), {offset, source_offset, bytes});
}

Result<void> OpenVersionFile::flush() {
  if (!writer_) return {};
  return parts_.state.pipeline.status();
}

Result<void> OpenVersionFile::sync() {
  return parts_.checkpointer.checkpoint(Checkpointer::Extent::kAll);
}

}  // namespace varve::version

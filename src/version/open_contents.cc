// SPDX-License-Identifier: Apache-2.0
#include "version/open_contents.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"

namespace varve::version {

namespace {
constexpr int kReadAttempts = 3;
constexpr std::size_t kRunsToKeep = 1024;
}  // namespace

// check_writable() has already made the overlay, so the loop checks for a freeze only.
Result<OpenInode*> OpenContents::wait_until_uncut(std::unique_lock<std::mutex>& lock, Ino ino) {
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  while (inode->staging.consolidating) {
    state_.consolidated.wait(lock);
    VARVE_TRY(state_.check_not_frozen());
    VARVE_TRY_ASSIGN(inode, state_.tree.get(ino));
  }
  return inode;
}

Result<void> OpenContents::write(OpenInode& inode, std::uint64_t offset,
                                 std::span<const std::byte> data) {
  if (data.empty()) return {};
  if (offset > kFileBytesMax || data.size() > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB");
  }
  const bool staged = inode.staging.is_staged() || offset < inode.content.size;
  const std::uint64_t needed = staged ? data.size() + staging_.bytes_for(data.size()) : data.size();
  VARVE_TRY(state_.admit(needed));
  if (!inode.staging.is_staged() && staged) VARVE_TRY(stage(inode));
  if (inode.staging.is_staged()) {
    VARVE_TRY(staging_.write(inode, offset, data));
  } else {
    VARVE_TRY(streams_.append(inode, offset, data));
  }
  inode.content.size = std::max(inode.content.size, offset + data.size());
  inode.mtime = inode.ctime = state_.parts.clock->now();
  state_.tree.touch(inode);
  return {};
}

Result<void> OpenContents::truncate(OpenInode& inode, std::uint64_t bytes) {
  if (bytes == inode.content.size) return {};
  auto done = resize(inode, bytes);
  if (inode.writers != 0) return done;
  // No handle will close the file: bring the file to rest now, also after a failure half-way.
  if (inode.staging.is_staged()) staging_.queue(inode.ino);
  auto finished = streams_.finish(inode);
  return done ? finished : done;
}

Result<void> OpenContents::resize(OpenInode& inode, std::uint64_t bytes) {
  if (bytes > kFileBytesMax) return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB");
  if (bytes == 0) {
    drop(inode);
  } else if (inode.staging.is_staged()) {
    inode.staging.ranges->resize(bytes);
    ++inode.staging.writes;
  } else if (bytes > inode.content.size) {
    VARVE_TRY(streams_.grow(inode, bytes));
  } else {
    VARVE_TRY(streams_.shrink(inode, bytes));
  }
  inode.content.size = bytes;
  state_.tree.touch(inode);
  return {};
}

// Starts staging: from now on, writes in any order go to a file of the staging folder. The content
// already cut stays in the recipe.
Result<void> OpenContents::stage(OpenInode& inode) {
  if (inode.staging.is_staged()) return staging_.open_file(inode);
  VARVE_TRY_ASSIGN(const auto content, streams_.settle(inode));
  VARVE_TRY_ASSIGN(auto staged, staging_.create(inode, content));
  drop(inode);
  staging_.adopt(inode, std::move(staged));
  return {};
}

// A program that reads a file during writing will do so again: staging serves reads and writes. A
// frozen version takes no more staged files. Without a descriptor for a staging file, each read
// waits until the content has a place.
Result<void> OpenContents::stage_for_reading(OpenInode& inode) {
  if (!inode.content.stream || inode.writers == 0 || state_.frozen) return {};
  auto staged = stage(inode);
  if (!staged && !base::lacks_resources(staged.error())) return staged;
  return {};
}

Result<void> OpenContents::punch(OpenInode& inode, std::uint64_t begin, std::uint64_t end) {
  end = std::min(end, inode.content.size);
  if (begin >= end) return {};
  VARVE_TRY(stage(inode));
  inode.staging.ranges->punch(begin, end);
  ++inode.staging.writes;
  state_.tree.touch(inode);
  return {};
}

Result<std::uint64_t> OpenContents::clone_range(OpenInode& inode,
                                                std::shared_ptr<OpenRecipe> source,
                                                const CloneRange& range) {
  const std::uint64_t offset = range.offset;
  if (range.source_offset >= source->bytes()) return std::uint64_t{0};
  const std::uint64_t bytes = std::min(range.bytes, source->bytes() - range.source_offset);
  if (bytes == 0) return bytes;
  if (offset > kFileBytesMax || bytes > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB");
  }
  if (offset == 0 && inode.content.size <= bytes && range.source_offset == 0 &&
      bytes == source->bytes()) {
    drop(inode);  // The whole file: shares the recipe of the source.
    inode.content.size = bytes;
    streams_.rest(inode, source->recipe());
  } else {
    VARVE_TRY(stage(inode));
    inode.staging.ranges->clone(offset, offset + bytes, std::move(source), range.source_offset);
    inode.content.size = inode.staging.ranges->size();
    ++inode.staging.writes;
  }
  inode.mtime = inode.ctime = state_.parts.clock->now();
  state_.tree.touch(inode);
  return bytes;
}

void OpenContents::drop(OpenInode& inode) {
  streams_.discard(inode);
  staging_.drop(inode);
  inode.content.clear_recipe();
  inode.content.hole_bytes = 0;
}

void OpenContents::drop_unused(OpenInode& inode) {
  if (inode.nlink != 0 || inode.handles != 0 || inode.held) return;
  drop(inode);
  state_.tree.erase(inode.ino);
}

void OpenContents::drop_forgotten() {
  for (const Ino ino : removed_.take_forgotten()) {
    const auto found = state_.tree.get(ino);
    if (!found) continue;
    (*found)->held = false;
    drop_unused(**found);
  }
}

Result<void> OpenContents::add_handle(Ino ino, bool writer) {
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  if (inode->is_directory()) return Error(ErrorCode::kIsDirectory, "a directory");
  if (!inode->is_regular()) return Error(ErrorCode::kInvalid, "not a regular file");
  ++inode->handles;
  if (writer) {
    ++inode->writers;
    ++state_.writers;
  }
  return {};
}

void OpenContents::release(Ino ino, bool writer) {
  const std::lock_guard lock(state_.mutex);
  if (writer) --state_.writers;
  auto found = state_.tree.get(ino);
  if (!found) return;
  OpenInode& inode = **found;
  --inode.handles;
  if (writer) --inode.writers;
  if (inode.nlink == 0) {
    drop_unused(inode);
    state_.wake_background();
    return;
  }
  if (!writer || inode.writers != 0) return;
  if (auto finished = streams_.finish(inode); !finished) {
    base::log(base::LogLevel::kError, "closing a file: " + finished.error().message());
  }
  if (inode.staging.is_staged()) {
    inode.staging.file.reset();
    staging_.queue(ino);
    state_.wake_background();
  }
}

// Reads content whose tail may still wait for room on the disk.
Result<std::size_t> OpenContents::read_content(const ingest::Content& content, std::uint64_t offset,
                                               std::span<std::byte> out) {
  const std::uint64_t cut = content.recipe.bytes();
  std::size_t done = 0;
  const auto recipe = std::make_shared<const format::Recipe>(content.recipe);
  while (done < out.size() && offset + done < cut) {
    const auto part =
        out.subspan(done, std::min<std::uint64_t>(out.size() - done, cut - offset - done));
    VARVE_TRY_ASSIGN(const auto got, state_.reader.read(recipe, offset + done, part));
    if (got == 0) return Error(ErrorCode::kCorrupt, "a file is shorter than it should be");
    done += got;
  }
  const auto from = content.tail.begin() + static_cast<std::ptrdiff_t>(offset + done - cut);
  std::copy_n(from, out.size() - done, out.begin() + static_cast<std::ptrdiff_t>(done));
  return out.size();
}

Result<std::size_t> OpenContents::read_staged(const std::vector<StagedContent::Range>& ranges,
                                              StagingFile* file, std::span<std::byte> out) {
  std::size_t done = 0;
  for (const auto& range : ranges) {
    const std::uint64_t end = std::min<std::uint64_t>(range.end - range.begin, out.size() - done);
    for (std::uint64_t at = 0; at < end;) {
      const auto part = out.subspan(done, end - at);
      std::size_t got = part.size();
      if (range.source == StagedContent::Source::kRecipe) {
        VARVE_TRY_ASSIGN(got, state_.reader.read(*range.recipe, range.source_offset + at, part));
      } else if (range.source == StagedContent::Source::kFile) {
        VARVE_TRY_ASSIGN(got, file->read(range.source_offset + at, part));
      } else {
        std::memset(part.data(), 0, part.size());
      }
      if (got == 0) {
        return Error(ErrorCode::kCorrupt, "a staged file is shorter than it should be");
      }
      at += got;
      done += got;
    }
  }
  return done;
}

// The page cache may return a part of a write in progress. So read() repeats a read if the file was
// written meanwhile. The last attempt holds the lock, which keeps writers out.
Result<std::size_t> OpenContents::read(Ino ino, std::uint64_t offset, std::span<std::byte> out) {
  for (int attempt = 1;; ++attempt) {
    std::unique_lock lock(state_.mutex);
    VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
    if (offset >= inode->content.size) return std::size_t{0};
    const auto part = out.first(std::min<std::uint64_t>(out.size(), inode->content.size - offset));
    streams_.absorb(*inode);
    VARVE_TRY(stage_for_reading(*inode));
    if (inode->content.has_growing_stream()) {
      VARVE_TRY_ASSIGN(const auto content, state_.pipeline.snapshot(inode->content.stream));
      if (content.bytes() == inode->content.size) {
        lock.unlock();
        return read_content(content, offset, part);
      }
    }
    if (!inode->staging.is_staged()) {
      VARVE_TRY(streams_.come_to_rest(*inode));
      const auto recipe = inode->content.recipe;
      // A recipe of many runs is expensive to open.
      const auto open = recipe->runs.size() > kRunsToKeep ? at_rest(*inode) : nullptr;
      lock.unlock();
      return open ? state_.reader.read(*open, offset, part)
                  : state_.reader.read(recipe, offset, part);
    }
    VARVE_TRY(staging_.open_file(*inode));
    const std::shared_ptr<StagingFile> file = inode->staging.file;
    std::vector<StagedContent::Range> ranges;
    for (std::uint64_t at = offset; at < offset + part.size(); at = ranges.back().end) {
      ranges.push_back(inode->staging.ranges->at(at));
    }
    if (attempt == kReadAttempts) return read_staged(ranges, file.get(), part);
    const std::uint64_t generation = inode->staging.generation;
    const std::uint64_t writes = inode->staging.writes;
    lock.unlock();
    auto got = read_staged(ranges, file.get(), part);
    lock.lock();
    VARVE_TRY_ASSIGN(inode, state_.tree.get(ino));
    if (inode->staging.generation == generation && inode->staging.writes == writes) return got;
  }
}

Result<std::uint64_t> OpenContents::seek(Ino ino, std::uint64_t offset, SeekFor wanted) {
  const std::lock_guard lock(state_.mutex);
  VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
  if (offset >= inode->content.size) {
    return Error(ErrorCode::kPastEnd, "past the end of the file");
  }
  streams_.absorb(*inode);
  VARVE_TRY(stage_for_reading(*inode));
  if (inode->staging.is_staged()) return inode->staging.ranges->seek(offset, wanted);
  VARVE_TRY(streams_.come_to_rest(*inode));
  return at_rest(*inode)->seek_blocks(offset, wanted);
}

/// Returns the recipe of a file at rest. Caches the last recipe, because programs go on in the same
/// file.
std::shared_ptr<OpenRecipe> OpenContents::at_rest(const OpenInode& inode) {
  if (!at_rest_ || at_rest_->shared() != inode.content.recipe) {
    at_rest_ = std::make_shared<OpenRecipe>(inode.content.recipe);
  }
  return at_rest_;
}

}  // namespace varve::version

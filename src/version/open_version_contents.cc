// SPDX-License-Identifier: Apache-2.0
// The contents of an open version's files: streams, staging and reading.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/log.h"
#include "version/open_version.h"
#include "version/open_version_file.h"
#include "version/recipe_seek.h"

namespace varve::version {

namespace {
constexpr int kReadAttempts = 3;

bool ends_in_hole(const ingest::Content& content) {
  return content.tail.empty() && !content.recipe.runs.empty() &&
         content.recipe.runs.back().is_hole();
}
}  // namespace

std::string OpenVersion::staging_path(Ino ino, std::uint64_t generation) const {
  return fmt::format("{}/{:x}-{:x}", files_directory_, ino, generation);
}

Result<OpenInode*> OpenVersion::content_inode(std::unique_lock<std::mutex>& lock, Ino ino) {
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  while (inode->consolidating) {
    consolidated_.wait(lock);
    VARVE_TRY(check_writable());
    VARVE_TRY_ASSIGN(inode, tree_.get(ino));
  }
  return inode;
}

Result<void> OpenVersion::load_recipe(OpenInode& inode) {
  if (inode.recipe) return {};
  if (!parts_.base) return Error(ErrorCode::kCorrupt, "a file without its recipe", EIO);
  return parts_.base->load_recipe(inode);
}

Result<void> OpenVersion::start_stream(OpenInode& inode) {
  if (inode.stream && !inode.stream_finished) return {};
  VARVE_TRY(load_recipe(inode));
  ingest::Content content;
  if (inode.stream) {
    VARVE_TRY_ASSIGN(content, settle(inode));
  } else {
    content.recipe = *inode.recipe;
  }
  // The last chunk ended where the file did; the bytes that follow may move its boundary.
  if (content.tail.empty()) {
    VARVE_TRY_ASSIGN(content.tail, reader_.take_last_chunk(content.recipe));
  }
  run_stream(inode, std::move(content));
  return {};
}

void OpenVersion::run_stream(OpenInode& inode, ingest::Content content) {
  inode.ends_in_hole = ends_in_hole(content);
  inode.stream = pipeline_.start(std::move(content));
  inode.stream_finished = false;
}

// Grows the file to `end` with zeros, fewer than a block has.
Result<void> OpenVersion::append_zeros(OpenInode& inode, std::uint64_t end) {
  static constexpr std::array<std::byte, kHoleBlockBytes> kZeros{};
  if (end == inode.size) return {};
  VARVE_TRY(pipeline_.append(inode.stream, std::span(kZeros).first(end - inode.size)));
  inode.size = end;
  inode.ends_in_hole = false;
  return {};
}

// Grows the file to `bytes`: with zeros to the end of a block with data, then with a hole.
Result<void> OpenVersion::grow_stream(OpenInode& inode, std::uint64_t bytes) {
  if (!inode.ends_in_hole) {
    VARVE_TRY(append_zeros(inode, std::min(bytes, block_end(inode.size))));
  }
  if (bytes == inode.size) return {};
  VARVE_TRY(pipeline_.append_hole(inode.stream, bytes - inode.size));
  inode.hole_bytes += bytes - inode.size;
  inode.size = bytes;
  inode.ends_in_hole = true;
  return {};
}

// Grows the file to `offset`, where data follows. The block of that offset must therefore not begin
// with a hole.
Result<void> OpenVersion::grow_to_data(OpenInode& inode, std::uint64_t offset) {
  const std::uint64_t begin = block_begin(offset);
  if (begin > inode.size) VARVE_TRY(grow_stream(inode, begin));
  if (inode.ends_in_hole && begin < inode.size) {
    VARVE_TRY_ASSIGN(auto content, settle(inode));
    // Recipes of older versions of Varve have holes that begin anywhere in a block.
    VARVE_TRY_ASSIGN(content.tail, reader_.cut_last_hole(content.recipe, begin));
    content.tail.resize(inode.size - content.recipe.bytes());
    inode.hole_bytes = content.recipe.bytes() - content.recipe.data_bytes();
    run_stream(inode, std::move(content));
    inode.recipe = std::make_shared<const format::Recipe>();
  }
  VARVE_TRY(append_zeros(inode, offset));
  inode.ends_in_hole = false;
  return {};
}

Result<void> OpenVersion::finish_stream(OpenInode& inode) {
  if (!inode.stream || inode.stream_finished) return {};
  inode.stream_finished = true;
  finishing_.push_back(inode.ino);
  tree_.touch(inode);
  return pipeline_.finish(inode.stream);
}

void OpenVersion::absorb(OpenInode& inode) {
  if (!inode.stream || !inode.stream_finished) return;
  auto recipe = pipeline_.take_finished(inode.stream);
  if (!recipe) return;
  inode.stream.reset();
  inode.stream_finished = false;
  rest(inode, std::move(*recipe));
}

// Makes the recipe the inode's content.
void OpenVersion::rest(OpenInode& inode, format::Recipe recipe) {
  inode.recipe = std::make_shared<const format::Recipe>(std::move(recipe));
  inode.hole_bytes = inode.recipe->bytes() - inode.recipe->data_bytes();
  tree_.touch(inode);
}

Result<ingest::Content> OpenVersion::settle(OpenInode& inode) {
  VARVE_TRY(load_recipe(inode));
  if (!inode.stream) return ingest::Content{*inode.recipe, {}};
  VARVE_TRY_ASSIGN(auto content, pipeline_.settle(inode.stream));
  pipeline_.discard(inode.stream);
  inode.stream.reset();
  inode.stream_finished = false;
  // Kept in case the caller fails: the cut part is at rest; the tail goes on in a stream.
  inode.recipe = std::make_shared<const format::Recipe>(content.recipe);
  if (!content.tail.empty()) inode.stream = pipeline_.start(content);
  return content;
}

void OpenVersion::drop_contents(OpenInode& inode) {
  if (inode.stream) {
    pipeline_.discard(inode.stream);
    inode.stream.reset();
    inode.stream_finished = false;
  }
  if (inode.staging != 0) {
    inode.staging_file.reset();
    inode.staged.reset();
    count_staged(inode);
    obsolete_staging_.push_back(staging_path(inode.ino, inode.staging));
    inode.staging = 0;
    inode.staging_lost = false;
  }
  inode.recipe = std::make_shared<const format::Recipe>();
  inode.hole_bytes = 0;
}

// The bytes of a staging file take their space a second time when they are cut.
void OpenVersion::count_staged(OpenInode& inode) {
  const std::uint64_t bytes = inode.staged ? inode.staged->file_bytes() : 0;
  staged_bytes_ += bytes - inode.staged_counted;
  inode.staged_counted = bytes;
}

std::uint64_t OpenVersion::unwritten_bytes() const {
  return pipeline_.held_bytes() + parts_.layout->unwritten_bytes() + staged_bytes_ + record_bytes_;
}

Result<void> OpenVersion::write(OpenInode& inode, std::uint64_t offset,
                                std::span<const std::byte> data) {
  if (data.empty()) return {};
  if (offset > kFileBytesMax || data.size() > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB", EFBIG);
  }
  const bool staged = inode.staging != 0 || offset < inode.size;
  VARVE_TRY(admit((staged ? 2 : 1) * data.size()));
  if (inode.staging == 0 && staged) VARVE_TRY(stage(inode));
  if (inode.staging != 0) {
    VARVE_TRY(write_staged(inode, offset, data));
  } else {
    VARVE_TRY(start_stream(inode));
    if (offset > inode.size || inode.ends_in_hole) VARVE_TRY(grow_to_data(inode, offset));
    VARVE_TRY(pipeline_.append(inode.stream, data));
  }
  inode.size = std::max(inode.size, offset + data.size());
  inode.mtime = inode.ctime = parts_.clock->now();
  tree_.touch(inode);
  return {};
}

Result<void> OpenVersion::truncate(OpenInode& inode, std::uint64_t bytes) {
  if (bytes == inode.size) return {};
  auto done = resize(inode, bytes);
  if (inode.writers != 0) return done;
  // No handle will close the file: bring it to rest now, also after a failure half-way.
  if (inode.staging != 0) staged_.push_back(inode.ino);
  auto finished = finish_stream(inode);
  return done ? finished : done;
}

Result<void> OpenVersion::resize(OpenInode& inode, std::uint64_t bytes) {
  if (bytes > kFileBytesMax) return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB", EFBIG);
  if (bytes == 0) {
    drop_contents(inode);
  } else if (inode.staging != 0) {
    inode.staged->resize(bytes);
    ++inode.staging_writes;
  } else if (bytes > inode.size) {
    VARVE_TRY(start_stream(inode));
    VARVE_TRY(grow_stream(inode, bytes));
  } else {
    VARVE_TRY_ASSIGN(auto content, settle(inode));
    const std::uint64_t cut = content.recipe.bytes();
    if (bytes >= cut) {
      content.tail.resize(bytes - cut);
    } else {
      VARVE_TRY_ASSIGN(content.tail, reader_.cut(content.recipe, bytes));
    }
    if (inode.stream) pipeline_.discard(inode.stream);
    inode.hole_bytes = content.recipe.bytes() - content.recipe.data_bytes();
    run_stream(inode, std::move(content));
    inode.recipe = std::make_shared<const format::Recipe>();
  }
  inode.size = bytes;
  tree_.touch(inode);
  return {};
}

void OpenVersion::release(Ino ino, bool writer) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (writer) --writers_;
    auto found = tree_.get(ino);
    if (!found) return;
    OpenInode& inode = **found;
    --inode.handles;
    if (writer) --inode.writers;
    if (inode.nlink == 0) {
      drop_unused(inode);
      return;
    }
    if (!writer || inode.writers != 0) return;
    if (auto finished = finish_stream(inode); !finished) {
      base::log(base::LogLevel::kError, "closing a file: " + finished.error().message());
    }
    if (inode.staging != 0) {
      inode.staging_file.reset();
      staged_.push_back(ino);
      wake = true;
    }
  }
  if (wake) wake_.notify_all();
}

// A file without a writer has a recipe at the latest when its chunks have their place.
Result<void> OpenVersion::come_to_rest(OpenInode& inode) {
  if (inode.stream) {
    VARVE_TRY(finish_stream(inode));
    // A full disk may lack a place only for another file's chunks.
    const auto drained = pipeline_.drain();
    absorb(inode);
    if (inode.stream && !drained) return drained;
    if (inode.stream) return Error(ErrorCode::kIo, "a file's last bytes have no place yet", EIO);
  }
  return load_recipe(inode);
}

// Reads content whose tail may still wait for room on the disk.
Result<std::size_t> OpenVersion::read_content(const ingest::Content& content, std::uint64_t offset,
                                              std::span<std::byte> out) {
  const std::uint64_t cut = content.recipe.bytes();
  std::size_t done = 0;
  const auto recipe = std::make_shared<const format::Recipe>(content.recipe);
  while (done < out.size() && offset + done < cut) {
    const auto part =
        out.subspan(done, std::min<std::uint64_t>(out.size() - done, cut - offset - done));
    VARVE_TRY_ASSIGN(const auto got, reader_.read(recipe, offset + done, part));
    if (got == 0) return Error(ErrorCode::kCorrupt, "a file is shorter than it should be", EIO);
    done += got;
  }
  const auto from = content.tail.begin() + static_cast<std::ptrdiff_t>(offset + done - cut);
  std::copy_n(from, out.size() - done, out.begin() + static_cast<std::ptrdiff_t>(done));
  return out.size();
}

// The disk's page cache may return a part of a write that is under way. So read() repeats a read
// during which the file was written, the last time with the lock, which keeps writers out.
Result<std::size_t> OpenVersion::read(Ino ino, std::uint64_t offset, std::span<std::byte> out) {
  for (int attempt = 1;; ++attempt) {
    std::unique_lock lock(mutex_);
    VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
    if (offset >= inode->size) return std::size_t{0};
    const auto part = out.first(std::min<std::uint64_t>(out.size(), inode->size - offset));
    absorb(*inode);
    // A file that is read while it is written will be so again: staging serves both. A version that
    // is being sealed takes no more staged files.
    if (inode->stream && inode->writers != 0 && !frozen_) VARVE_TRY(stage(*inode));
    if (inode->stream && !inode->stream_finished) {
      VARVE_TRY_ASSIGN(const auto content, pipeline_.snapshot(inode->stream));
      if (content.bytes() == inode->size) {
        lock.unlock();
        return read_content(content, offset, part);
      }
    }
    if (inode->staging == 0) {
      VARVE_TRY(come_to_rest(*inode));
      const auto recipe = inode->recipe;
      lock.unlock();
      return reader_.read(recipe, offset, part);
    }
    VARVE_TRY(open_staging(*inode));
    const std::shared_ptr<io::File> file = inode->staging_file;
    std::vector<StagedContent::Range> ranges;
    for (std::uint64_t at = offset; at < offset + part.size(); at = ranges.back().end) {
      ranges.push_back(inode->staged->at(at));
    }
    if (attempt == kReadAttempts) return read_staged(ranges, file.get(), part);
    const std::uint64_t generation = inode->staging;
    const std::uint64_t writes = inode->staging_writes;
    lock.unlock();
    auto got = read_staged(ranges, file.get(), part);
    lock.lock();
    VARVE_TRY_ASSIGN(inode, tree_.get(ino));
    if (inode->staging == generation && inode->staging_writes == writes) return got;
  }
}

Result<std::uint64_t> OpenVersion::seek(Ino ino, std::uint64_t offset, bool data) {
  const SeekFor wanted = data ? SeekFor::kData : SeekFor::kHole;
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  if (offset >= inode->size) {
    return Error(ErrorCode::kNotFound, "past the end of the file", ENXIO);
  }
  absorb(*inode);
  if (inode->stream && inode->writers != 0 && !frozen_) VARVE_TRY(stage(*inode));
  if (inode->staging != 0) return inode->staged->seek(offset, wanted);
  VARVE_TRY(come_to_rest(*inode));
  return seek_blocks_in_recipe(*inode->recipe, inode->size, offset, wanted);
}

}  // namespace varve::version

// SPDX-License-Identifier: Apache-2.0
// What is in the files of an open version: streams, staging and reading.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "version/open_version.h"
#include "version/open_version_file.h"
#include "version/recipe_seek.h"

namespace varve::version {

namespace {
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 62;
constexpr std::size_t kCopyBytes = 1U << 20;

}  // namespace

std::string OpenVersion::staging_path(Ino ino, std::uint64_t generation) const {
  return fmt::format("{}/{:x}-{:x}", files_directory_, ino, generation);
}

Result<void> OpenVersion::start_stream(OpenInode& inode) {
  if (inode.stream && !inode.stream_finished) return {};
  ingest::Content content;
  if (inode.stream) {
    VARVE_TRY_ASSIGN(content, settle(inode));
  } else {
    content.recipe = *inode.recipe;
  }
  // The last chunk ended where the file did; what follows may move its boundary.
  if (content.tail.empty()) {
    VARVE_TRY_ASSIGN(content.tail, reader_.take_last_chunk(content.recipe));
  }
  inode.stream = pipeline_.start(std::move(content));
  inode.stream_finished = false;
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
  inode.recipe = std::make_shared<const format::Recipe>(std::move(*recipe));
  inode.hole_bytes = inode.recipe->bytes() - inode.recipe->data_bytes();
  inode.stream.reset();
  inode.stream_finished = false;
  tree_.touch(inode);
}

Result<ingest::Content> OpenVersion::settle(OpenInode& inode) {
  if (!inode.stream) return ingest::Content{*inode.recipe, {}};
  VARVE_TRY_ASSIGN(auto content, pipeline_.settle(inode.stream));
  pipeline_.discard(inode.stream);
  inode.stream.reset();
  inode.stream_finished = false;
  // Kept in case the caller fails: what is cut is at rest; the tail goes on in a stream.
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
    obsolete_staging_.push_back(staging_path(inode.ino, inode.staging));
    inode.staging = 0;
  }
  inode.recipe = std::make_shared<const format::Recipe>();
  inode.hole_bytes = 0;
}

Result<void> OpenVersion::open_staging(OpenInode& inode) {
  if (inode.staging_file) return {};
  VARVE_TRY_ASSIGN(inode.staging_file, parts_.files->open(staging_path(inode.ino, inode.staging),
                                                          io::OpenMode::kReadWrite));
  return {};
}

// Copies the content to a file of the staging folder, which then takes writes in any order.
Result<void> OpenVersion::stage(OpenInode& inode) {
  if (inode.staging != 0) return open_staging(inode);
  VARVE_TRY_ASSIGN(const auto content, settle(inode));
  const std::uint64_t generation = ++staging_generation_;
  const std::string path = staging_path(inode.ino, generation);
  VARVE_TRY_ASSIGN(auto file, parts_.files->open(path, io::OpenMode::kReadWrite));
  const auto copy = [&]() -> Result<void> {
    std::vector<std::byte> buffer(kCopyBytes);
    std::uint64_t at = 0;
    for (const auto& run : inode.recipe->runs) {
      const std::uint64_t end = at + run.bytes;
      while (at < end && !run.is_hole()) {
        const std::span<std::byte> part(buffer.data(),
                                        std::min<std::uint64_t>(buffer.size(), end - at));
        VARVE_TRY_ASSIGN(const std::size_t got, reader_.read(inode.recipe, at, part));
        if (got == 0) return Error(ErrorCode::kCorrupt, "a file ends before its size", EIO);
        VARVE_TRY(file->write_at(at, part.first(got)));
        at += got;
      }
      at = end;
    }
    if (!content.tail.empty()) VARVE_TRY(file->write_at(at, content.tail));
    return file->truncate(inode.size);
  };
  if (auto copied = copy(); !copied) {
    file.reset();
    static_cast<void>(parts_.files->remove(path));
    return copied;
  }
  drop_contents(inode);
  inode.staging = generation;
  inode.staging_file = std::move(file);
  tree_.touch(inode);
  return {};
}

Result<void> OpenVersion::write(OpenInode& inode, std::uint64_t offset,
                                std::span<const std::byte> data) {
  if (data.empty()) return {};
  if (offset > kFileBytesMax || data.size() > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB", EFBIG);
  }
  if (inode.staging == 0 && offset < inode.size) VARVE_TRY(stage(inode));
  if (inode.staging != 0) {
    VARVE_TRY(open_staging(inode));
    VARVE_TRY(inode.staging_file->write_at(offset, data));
    ++inode.staging_writes;
  } else {
    VARVE_TRY(start_stream(inode));
    if (offset > inode.size) {
      VARVE_TRY(pipeline_.append_hole(inode.stream, offset - inode.size));
      inode.hole_bytes += offset - inode.size;
      inode.size = offset;
    }
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
  // Nobody will close it: bring it to rest now, also after a failure half-way.
  if (inode.staging != 0) staged_.push_back(inode.ino);
  auto finished = finish_stream(inode);
  return done ? finished : done;
}

Result<void> OpenVersion::resize(OpenInode& inode, std::uint64_t bytes) {
  if (bytes > kFileBytesMax) return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB", EFBIG);
  if (bytes == 0) {
    drop_contents(inode);
  } else if (inode.staging != 0) {
    VARVE_TRY(open_staging(inode));
    VARVE_TRY(inode.staging_file->truncate(bytes));
    ++inode.staging_writes;
  } else if (bytes > inode.size) {
    VARVE_TRY(start_stream(inode));
    VARVE_TRY(pipeline_.append_hole(inode.stream, bytes - inode.size));
    inode.hole_bytes += bytes - inode.size;
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
    inode.stream = pipeline_.start(std::move(content));
    inode.stream_finished = false;
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
      if (inode.handles != 0) return;
      drop_contents(inode);
      tree_.erase(ino);
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

Result<std::size_t> OpenVersion::read(Ino ino, std::uint64_t offset, std::span<std::byte> out) {
  std::shared_ptr<const format::Recipe> recipe;
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
    if (offset >= inode->size) return std::size_t{0};
    out = out.first(std::min<std::uint64_t>(out.size(), inode->size - offset));
    absorb(*inode);
    // A file that is read while it is written will be so again: staging serves both.
    if (inode->stream && inode->writers != 0) VARVE_TRY(stage(*inode));
    if (inode->staging != 0) {
      VARVE_TRY(open_staging(*inode));
      return inode->staging_file->read_at(offset, out);
    }
    if (inode->stream) {
      VARVE_TRY(pipeline_.drain());
      absorb(*inode);
    }
    recipe = inode->recipe;
  }
  return reader_.read(recipe, offset, out);
}

Result<std::uint64_t> OpenVersion::seek(Ino ino, std::uint64_t offset, bool data) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  const Error past_end(ErrorCode::kNotFound, "past the end of the file", ENXIO);
  if (offset >= inode->size) return past_end;
  if (inode->stream && inode->writers != 0) VARVE_TRY(stage(*inode));
  if (inode->staging != 0) {
    VARVE_TRY(open_staging(*inode));
    return data ? inode->staging_file->seek_data(offset) : inode->staging_file->seek_hole(offset);
  }
  if (inode->stream) {
    VARVE_TRY(pipeline_.drain());
    absorb(*inode);
  }
  return seek_in_recipe(*inode->recipe, inode->size, offset,
                        data ? SeekFor::kData : SeekFor::kHole);
}

// ---- The handle. ----

OpenVersionFile::~OpenVersionFile() { version_->release(ino_, writer_); }

Result<void> OpenVersionFile::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (!writer_) return Error(ErrorCode::kInvalid, "not open for writing", EBADF);
  {
    const std::lock_guard lock(version_->mutex_);
    VARVE_TRY(version_->check_writable());
    VARVE_TRY_ASSIGN(auto* inode, version_->tree_.get(ino_));
    VARVE_TRY(version_->write(*inode, offset, data));
  }
  return {};
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

Result<void> OpenVersionFile::allocate(std::uint64_t, std::uint64_t, AllocateMode) {
  return Error(ErrorCode::kUnsupported, "not supported", EOPNOTSUPP);
}

Result<std::uint64_t> OpenVersionFile::clone_range(FileReader&, std::uint64_t, std::uint64_t,
                                                   std::uint64_t) {
  return Error(ErrorCode::kOtherVersion, "nothing can be shared", EXDEV);
}

Result<std::uint64_t> OpenVersionFile::clone_range(OpenFile&, std::uint64_t, std::uint64_t,
                                                   std::uint64_t) {
  return Error(ErrorCode::kOtherVersion, "nothing can be shared", EXDEV);
}

Result<void> OpenVersionFile::flush() {
  if (!writer_) return {};
  return version_->pipeline_.status();
}

Result<void> OpenVersionFile::sync() { return version_->checkpoint(OpenVersion::Extent::kAll); }

}  // namespace varve::version

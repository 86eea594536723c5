// SPDX-License-Identifier: Apache-2.0
// Files of an open version that are written out of order.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "version/content_cutter.h"
#include "version/open_version.h"

namespace varve::version {

namespace {
// Above these limits, a file is cut while it is still open, so that the staging folder and the
// ranges in memory stay bounded.
constexpr std::uint64_t kStagedBytesMax = std::uint64_t{512} << 20;
constexpr std::size_t kRangesMax = 16384;
}  // namespace

Result<void> OpenVersion::open_staging(OpenInode& inode) {
  if (inode.staging_file) return {};
  VARVE_TRY_ASSIGN(inode.staging_file, parts_.files->open(staging_path(inode.ino, inode.staging),
                                                          io::OpenMode::kReadWrite));
  return {};
}

// Starts staging: from now on, writes in any order go to a file of the staging folder. The part
// that is cut already stays where it is.
Result<void> OpenVersion::stage(OpenInode& inode) {
  if (inode.staging != 0) return open_staging(inode);
  VARVE_TRY_ASSIGN(const auto content, settle(inode));
  auto staged = std::make_unique<StagedContent>(
      std::make_shared<OpenRecipe>(std::make_shared<const format::Recipe>(content.recipe)));
  const std::uint64_t generation = ++staging_generation_;
  const std::string path = staging_path(inode.ino, generation);
  VARVE_TRY_ASSIGN(std::shared_ptr<io::File> file,
                   parts_.files->open(path, io::OpenMode::kReadWrite));
  if (!content.tail.empty()) {
    const std::uint64_t at = staged->size();
    if (auto copied = file->write_at(at, content.tail); !copied) {
      file.reset();
      static_cast<void>(parts_.files->remove(path));
      return copied;
    }
    staged->write(at, at + content.tail.size());
  }
  staged->resize(inode.size);
  drop_contents(inode);
  inode.staging = generation;
  inode.staged = std::move(staged);
  inode.staging_file = std::move(file);
  count_staged(inode);
  tree_.touch(inode);
  return {};
}

Result<void> OpenVersion::write_staged(OpenInode& inode, std::uint64_t offset,
                                       std::span<const std::byte> data) {
  VARVE_TRY(open_staging(inode));
  VARVE_TRY(inode.staging_file->write_at(offset, data));
  inode.staged->write(offset, offset + data.size());
  count_staged(inode);
  ++inode.staging_writes;
  return {};
}

Result<void> OpenVersion::punch(OpenInode& inode, std::uint64_t begin, std::uint64_t end) {
  end = std::min(end, inode.size);
  if (begin >= end) return {};
  VARVE_TRY(stage(inode));
  inode.staged->punch(begin, end);
  ++inode.staging_writes;
  tree_.touch(inode);
  return {};
}

bool OpenVersion::wants_consolidating(const OpenInode& inode) const {
  if (!inode.staged || inode.nlink == 0) return false;
  const std::uint64_t bytes = inode.consolidate_at != 0 ? inode.consolidate_at : kStagedBytesMax;
  return inode.staged->file_bytes() > bytes || inode.staged->ranges() > kRangesMax;
}

Result<std::uint64_t> OpenVersion::clone_range(OpenInode& inode, std::uint64_t offset,
                                               std::shared_ptr<OpenRecipe> source,
                                               std::uint64_t source_offset, std::uint64_t bytes) {
  if (source_offset >= source->bytes()) return std::uint64_t{0};
  bytes = std::min(bytes, source->bytes() - source_offset);
  if (bytes == 0) return bytes;
  if (offset > kFileBytesMax || bytes > kFileBytesMax - offset) {
    return Error(ErrorCode::kTooLarge, "a file has at most 4 EiB", EFBIG);
  }
  if (offset == 0 && inode.size <= bytes && source_offset == 0 && bytes == source->bytes()) {
    drop_contents(inode);  // The whole file: takes the recipe itself.
    inode.size = bytes;
    rest(inode, source->recipe());
  } else {
    VARVE_TRY(stage(inode));
    inode.staged->clone(offset, offset + bytes, std::move(source), source_offset);
    inode.size = inode.staged->size();
    ++inode.staging_writes;
  }
  inode.mtime = inode.ctime = parts_.clock->now();
  tree_.touch(inode);
  return bytes;
}

// Fails for a file that is being written: the caller copies its bytes instead.
Result<std::shared_ptr<OpenRecipe>> OpenVersion::recipe_at_rest(Ino ino) {
  VARVE_TRY_ASSIGN(auto* inode, tree_.get(ino));
  if (inode->staging != 0 || (inode->stream && inode->writers != 0)) {
    return Error(ErrorCode::kUnsupported, "the file is being written", EOPNOTSUPP);
  }
  VARVE_TRY(come_to_rest(*inode));
  if (clone_source_ != inode->recipe) {
    clone_recipe_ = std::make_shared<OpenRecipe>(inode->recipe);
    clone_source_ = inode->recipe;
  }
  return clone_recipe_;
}

Result<std::size_t> OpenVersion::read_staged(const std::vector<StagedContent::Range>& ranges,
                                             io::File* file, std::span<std::byte> out) {
  std::size_t done = 0;
  for (const auto& range : ranges) {
    const std::uint64_t end = std::min<std::uint64_t>(range.end - range.begin, out.size() - done);
    for (std::uint64_t at = 0; at < end;) {
      const auto part = out.subspan(done, end - at);
      std::size_t got = part.size();
      if (range.source == StagedContent::Source::kRecipe) {
        VARVE_TRY_ASSIGN(got, reader_.read(*range.recipe, range.recipe_offset + at, part));
      } else if (range.source == StagedContent::Source::kFile) {
        VARVE_TRY_ASSIGN(got, file->read_at(range.begin + at, part));
      } else {
        std::memset(part.data(), 0, part.size());
      }
      if (got == 0) {
        return Error(ErrorCode::kCorrupt, "a staged file is shorter than it should be", EIO);
      }
      at += got;
      done += got;
    }
  }
  return done;
}

// ---- Cutting; without the lock. ----

Result<format::Recipe> OpenVersion::cut(const StagedContent& content, io::File* file) {
  ContentCutter cutter(reader_, *parts_.chunker, *parts_.index, pipeline_, content, file);
  const auto stream = pipeline_.start({});
  auto done = cutter.feed(stream);
  if (done) done = pipeline_.finish(stream);
  if (done) done = pipeline_.drain();
  if (!done) {
    pipeline_.discard(stream);
    return std::move(done).error();
  }
  auto recipe = pipeline_.take_finished(stream);
  if (!recipe) return Error(ErrorCode::kIo, "a file's chunks have no place yet", EIO);
  return std::move(*recipe);
}

// Returns the recipe itself if this version may refer to all of its chunks, which are those of its
// neighbour. Otherwise returns a recipe with copies of the other chunks (MFDedup, FAST'21 section
// 3.1: a chunk is shared by adjacent versions only).
Result<std::shared_ptr<const format::Recipe>> OpenVersion::reachable(
    const std::shared_ptr<const format::Recipe>& recipe) {
  const bool all = std::ranges::all_of(recipe->runs, [&](const format::RecipeRun& run) {
    return run.is_hole() || parts_.index->covers(run.first, run.count) == run.count;
  });
  if (all) return recipe;
  VARVE_TRY(admit(recipe->data_bytes()));
  const StagedContent content(std::make_shared<OpenRecipe>(recipe));
  VARVE_TRY_ASSIGN(auto copy, cut(content, nullptr));
  return std::make_shared<const format::Recipe>(std::move(copy));
}

Result<std::shared_ptr<OpenRecipe>> OpenVersion::clonable(
    const std::shared_ptr<const format::Recipe>& recipe) {
  {
    const std::lock_guard lock(mutex_);
    if (clone_source_ == recipe) return clone_recipe_;
  }
  VARVE_TRY_ASSIGN(const auto usable, reachable(recipe));
  auto open = std::make_shared<OpenRecipe>(usable);
  const std::lock_guard lock(mutex_);
  clone_source_ = recipe;
  clone_recipe_ = open;
  return open;
}

// If the file changed in the meantime, it stays staged for the next time.
Result<void> OpenVersion::ingest_staged(Ino ino, Users users) {
  const std::shared_lock references(references_mutex_);
  StagedContent content;
  std::shared_ptr<io::File> file;
  std::uint64_t generation = 0;
  std::uint64_t writes = 0;
  {
    std::unique_lock lock(mutex_);
    auto inode = tree_.get(ino);
    // A seal that cut writers off waits for the file that is being consolidated.
    while (inode && (*inode)->consolidating && frozen_) {
      consolidated_.wait(lock);
      inode = tree_.get(ino);
    }
    if (!inode || (*inode)->staging == 0 || (*inode)->consolidating) return {};
    if ((*inode)->nlink == 0) return {};  // Nothing will need its chunks.
    if (users == Users::kNone && (*inode)->writers != 0 && !frozen_) return {};
    VARVE_TRY(check_staging(**inode));
    VARVE_TRY(open_staging(**inode));
    content = *(*inode)->staged;
    file = (*inode)->staging_file;
    generation = (*inode)->staging;
    writes = (*inode)->staging_writes;
    if (users == Users::kAny) (*inode)->consolidating = true;
  }
  auto recipe = cut(content, file.get());
  const std::lock_guard lock(mutex_);
  const auto found = tree_.get(ino);
  if (!found) return {};
  OpenInode& inode = **found;
  if (users == Users::kAny) {
    inode.consolidating = false;
    consolidated_.notify_all();
  }
  if (!recipe) return std::move(recipe).error();
  if (inode.staging != generation || inode.staging_writes != writes ||
      (users == Users::kNone && inode.writers != 0 && !frozen_)) {
    if (inode.staging != 0 && inode.writers == 0) staged_.push_back(ino);
    return {};
  }
  const std::uint64_t size = inode.size;
  drop_contents(inode);
  inode.size = size;
  rest(inode, std::move(*recipe));
  return {};
}

Result<void> OpenVersion::ingest_all_staged() {
  const std::lock_guard one(ingest_mutex_);
  Result<void> first_failure;
  std::vector<Ino> failed;
  while (true) {
    Ino ino = 0;
    {
      const std::lock_guard lock(mutex_);
      if (staged_.empty() || stopping_) {
        staged_.insert(staged_.end(), failed.begin(), failed.end());
        return first_failure;
      }
      ino = staged_.front();
      staged_.pop_front();
    }
    auto done = ingest_staged(ino, Users::kNone);
    if (done) continue;
    failed.push_back(ino);
    if (first_failure) first_failure = std::move(done);
  }
}

// Writers of this file wait meanwhile; writers of other files do not. A failure costs only space in
// the staging folder, and closing the file tries again. The next attempt here comes much later.
void OpenVersion::consolidate(Ino ino) {
  auto done = ingest_staged(ino, Users::kAny);
  if (done) return;
  base::log(base::LogLevel::kWarning, "cutting a file that is open: " + done.error().message());
  const std::lock_guard lock(mutex_);
  const auto inode = tree_.get(ino);
  if (inode && (*inode)->staged) (*inode)->consolidate_at = 2 * (*inode)->staged->file_bytes();
}

}  // namespace varve::version

// SPDX-License-Identifier: Apache-2.0
#include "version/staged_ingest.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "version/content_cutter.h"

namespace varve::version {

namespace {
// Limits above which a file is cut while still open.
constexpr std::uint64_t kStagedBytesMax = std::uint64_t{512} << 20;
constexpr std::size_t kRangesMax = 16384;
}  // namespace

Result<format::Recipe> StagedIngest::cut(const StagedContent& content, StagingFile* file) {
  auto& pipeline = state_.pipeline;
  ContentCutter cutter(state_.reader, *state_.parts.chunker, *state_.parts.index, pipeline, content,
                       file);
  const auto stream = pipeline.start({});
  auto done = cutter.feed(stream);
  if (done) done = pipeline.finish(stream);
  if (done) done = pipeline.drain();
  if (!done) {
    pipeline.discard(stream);
    return std::move(done).error();
  }
  auto recipe = pipeline.take_finished(stream);
  if (!recipe) return Error(ErrorCode::kIo, "a file's chunks are not stored yet");
  return std::move(*recipe);
}

Result<void> StagedIngest::ingest(Ino ino, Users users) {
  const std::shared_lock references(state_.references_mutex);
  StagedContent content;
  std::shared_ptr<StagingFile> file;
  std::uint64_t generation = 0;
  std::uint64_t writes = 0;
  {
    std::unique_lock lock(state_.mutex);
    auto inode = state_.tree.get(ino);
    // A seal that cut writers off waits until a consolidation of the file ends.
    while (inode && (*inode)->staging.consolidating && state_.frozen) {
      state_.consolidated.wait(lock);
      inode = state_.tree.get(ino);
    }
    if (!inode || !(*inode)->staging.is_staged() || (*inode)->staging.consolidating) return {};
    if ((*inode)->nlink == 0) return {};  // Nothing will need the file's chunks.
    if (users == Users::kNone && (*inode)->writers != 0 && !state_.frozen) return {};
    VARVE_TRY(StagingArea::check(**inode));
    VARVE_TRY(staging_.open_file(**inode));
    content = *(*inode)->staging.ranges;
    file = (*inode)->staging.file;
    generation = (*inode)->staging.generation;
    writes = (*inode)->staging.writes;
    if (users == Users::kAny) (*inode)->staging.consolidating = true;
  }
  auto recipe = cut(content, file.get());
  const std::lock_guard lock(state_.mutex);
  const auto found = state_.tree.get(ino);
  if (!found) return {};
  OpenInode& inode = **found;
  if (users == Users::kAny) {
    inode.staging.consolidating = false;
    state_.consolidated.notify_all();
  }
  if (!recipe) return std::move(recipe).error();
  if (inode.staging.generation != generation || inode.staging.writes != writes ||
      (users == Users::kNone && inode.writers != 0 && !state_.frozen)) {
    if (inode.staging.is_staged() && inode.writers == 0) staging_.queue(ino);
    return {};
  }
  const std::uint64_t size = inode.content.size;
  contents_.drop(inode);
  inode.content.size = size;
  streams_.rest(inode, std::move(*recipe));
  return {};
}

Result<void> StagedIngest::ingest_all() {
  const std::lock_guard one(mutex_);
  Result<void> first_failure;
  std::vector<Ino> failed;
  while (true) {
    Ino ino = 0;
    {
      const std::lock_guard lock(state_.mutex);
      if (!staging_.has_queued() || state_.stopping) {
        staging_.queue(failed);
        return first_failure;
      }
      ino = staging_.take_first();
    }
    auto done = ingest(ino, Users::kNone);
    if (done) continue;
    failed.push_back(ino);
    if (first_failure) first_failure = std::move(done);
  }
}

bool StagedIngest::wants_consolidating(const OpenInode& inode) {
  if (!inode.staging.is_staged() || inode.nlink == 0) return false;
  const std::uint64_t bytes =
      inode.staging.consolidate_at != 0 ? inode.staging.consolidate_at : kStagedBytesMax;
  return inode.staging.bytes_on_disk() > bytes || inode.staging.ranges->ranges() > kRangesMax;
}

// A failure costs only space in the staging folder, and closing the file tries again. The next call
// of consolidate() comes much later.
void StagedIngest::consolidate(Ino ino) {
  auto done = ingest(ino, Users::kAny);
  if (done) return;
  base::log(base::LogLevel::kWarning, "cutting a file that is open: " + done.error().message());
  const std::lock_guard lock(state_.mutex);
  const auto inode = state_.tree.get(ino);
  if (inode && (*inode)->staging.is_staged()) {
    (*inode)->staging.consolidate_at = 2 * (*inode)->staging.bytes_on_disk();
  }
}

}  // namespace varve::version

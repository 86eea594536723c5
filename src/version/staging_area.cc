// SPDX-License-Identifier: Apache-2.0
#include "version/staging_area.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace varve::version {

namespace {
constexpr std::uint64_t kGenerationsEnd = std::uint64_t{1} << 62;  // Never reached by counting.

// Returns the file. The file holds the share while open.
std::shared_ptr<StagingFile> with_share(std::shared_ptr<StagingFile> file,
                                        base::DescriptorBudget::Share share) {
  auto* const raw = file.get();
  using Shared = std::pair<base::DescriptorBudget::Share, std::shared_ptr<StagingFile>>;
  return {std::make_shared<Shared>(std::move(share), std::move(file)), raw};
}
}  // namespace

StagingArea::StagingArea(OpenState& state)
    : state_(state), directory_(state.parts.staging_directory + "/files") {}

std::string StagingArea::path(Ino ino, std::uint64_t generation) const {
  return staging_file_path(state_.parts.staging_directory, ino, generation);
}

StagingPlace StagingArea::place(Ino ino, std::uint64_t generation) const {
  return {state_.info.series, state_.info.number, ino, generation};
}

std::uint64_t StagingArea::bytes_for(std::uint64_t written) const {
  return written + (state_.parts.keys ? sealed_staging_overhead(written) : 0);
}

Result<StagingArea::NewContent> StagingArea::create(const OpenInode& inode,
                                                    const ingest::Content& content) {
  VARVE_TRY_ASSIGN(auto share,
                   state_.parts.descriptors->take("cannot write to this file out of order"));
  auto staged = std::make_unique<StagedContent>(
      std::make_shared<OpenRecipe>(std::make_shared<const format::Recipe>(content.recipe)));
  const std::uint64_t generation = ++last_generation_;
  const std::string name = path(inode.ino, generation);
  auto file = create_staging_file(*state_.parts.files, name, state_.parts.keys.get(),
                                  place(inode.ino, generation));
  const std::uint64_t at = staged->size();
  auto copied = file ? (*file)->write(at, content.tail) : Result<std::uint64_t>(file.error());
  if (!copied) {
    static_cast<void>(state_.parts.files->remove(name));
    return std::move(copied).error();
  }
  staged->write(at, at + content.tail.size(), *copied);
  staged->resize(inode.content.size);
  return NewContent{generation, std::move(staged), with_share(*std::move(file), std::move(share))};
}

void StagingArea::adopt(OpenInode& inode, NewContent content) {
  inode.staging.begin(content.generation, std::move(content.ranges), std::move(content.file));
  count(inode);
  state_.tree.touch(inode);
}

Result<void> StagingArea::open_file(OpenInode& inode) {
  if (inode.staging.file) return {};
  VARVE_TRY_ASSIGN(
      inode.staging.file,
      open_staging_file(*state_.parts.files, path(inode.ino, inode.staging.generation),
                        state_.parts.keys.get(), place(inode.ino, inode.staging.generation),
                        inode.staging.ranges->file_end()));
  return {};
}

Result<void> StagingArea::write(OpenInode& inode, std::uint64_t offset,
                                std::span<const std::byte> data) {
  VARVE_TRY(open_file(inode));
  VARVE_TRY_ASSIGN(const auto at, inode.staging.file->write(offset, data));
  inode.staging.ranges->write(offset, offset + data.size(), at);
  count(inode);
  ++inode.staging.writes;
  return {};
}

void StagingArea::drop(OpenInode& inode) {
  if (!inode.staging.is_staged()) return;
  obsolete_.push_back(path(inode.ino, inode.staging.generation));
  inode.staging.end();
  count(inode);
}

// Brings the inode's part of the sum up to date.
void StagingArea::count(OpenInode& inode) {
  const std::uint64_t bytes = inode.staging.ranges ? inode.staging.ranges->file_bytes() : 0;
  bytes_ += bytes - inode.staging.counted;
  inode.staging.counted = bytes;
}

Result<void> StagingArea::check(const OpenInode& inode) {
  if (!inode.staging.lost) return {};
  return Error(ErrorCode::kIo,
               fmt::format("the disk failed while Varve wrote to the file with inode number {}; "
                           "write that file again, or remove it",
                           inode.ino));
}

void StagingArea::queue(const std::vector<Ino>& inodes) {
  queue_.insert(queue_.end(), inodes.begin(), inodes.end());
}

Ino StagingArea::take_first() {
  const Ino first = queue_.front();
  queue_.pop_front();
  return first;
}

StagingArea::Changes StagingArea::take_changes() {
  Changes changes;
  for (const Ino ino : std::exchange(unsynced_, {})) {
    const auto inode = state_.tree.get(ino);
    if (inode && (*inode)->staging.is_staged()) {
      changes.to_sync.emplace_back(ino, (*inode)->staging.generation);
    }
  }
  changes.obsolete = std::exchange(obsolete_, {});
  return changes;
}

Result<void> StagingArea::sync(const Changes& changes) {
  for (const auto& [ino, generation] : changes.to_sync) VARVE_TRY(sync_file(ino, generation));
  if (!changes.to_sync.empty()) VARVE_TRY(state_.parts.files->sync_directory(directory_));
  return {};
}

// After a failed write-back, the kernel forgets the page, and the next sync succeeds. So the inode
// remembers the failure as long as the inode uses the staging file (docs/ORDERING.md O8).
Result<void> StagingArea::sync_file(Ino ino, std::uint64_t generation) {
  {
    const std::lock_guard lock(state_.mutex);
    const auto inode = state_.tree.get(ino);
    // Another thread may have cut the file; the record to commit still names the staging file.
    if (inode && (*inode)->staging.generation == generation) VARVE_TRY(check(**inode));
  }
  VARVE_TRY_ASSIGN(const auto file,
                   state_.parts.files->open(path(ino, generation), io::OpenMode::kReadWrite));
  auto synced = file->sync();
  if (synced) return {};
  const std::lock_guard lock(state_.mutex);
  const auto inode = state_.tree.get(ino);
  if (inode && (*inode)->staging.generation == generation) (*inode)->staging.lost = true;
  return synced;
}

void StagingArea::settle(const Changes& changes) {
  for (const auto& name : changes.obsolete) static_cast<void>(state_.parts.files->remove(name));
}

void StagingArea::restore(const Changes& changes) {
  for (const auto& staged : changes.to_sync) unsynced_.push_back(staged.first);
  obsolete_.insert(obsolete_.end(), changes.obsolete.begin(), changes.obsolete.end());
}

Result<void> StagingArea::recover() {
  VARVE_TRY_ASSIGN(const auto names, state_.parts.files->list(directory_));
  for (const auto& name : names) {
    // A staging file without an inode remains from a crash.
    const auto dash = name.find('-');
    const Ino ino = std::strtoull(name.c_str(), nullptr, 16);
    const std::uint64_t generation =
        dash == std::string::npos ? 0 : std::strtoull(name.c_str() + dash + 1, nullptr, 16);
    const auto full_name = directory_ + "/" + name;
    // Files with names of another form stay: a hostile folder could link to another folder.
    if (generation >= kGenerationsEnd || path(ino, generation) != full_name) continue;
    last_generation_ = std::max(last_generation_, generation);
    auto inode = state_.tree.get(ino);
    if (inode && (*inode)->staging.generation == generation && generation != 0) {
      queue_.push_back(ino);
      bytes_ += (*inode)->staging.counted;
    } else {
      VARVE_TRY(state_.parts.files->remove(full_name));
    }
  }
  return {};
}

}  // namespace varve::version

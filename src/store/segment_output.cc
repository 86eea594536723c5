// SPDX-License-Identifier: Apache-2.0
#include "store/segment_output.h"

#include <array>
#include <utility>

#include "store/container_rewrite.h"
#include "store/segment_files.h"
#include "store/space_guard.h"

namespace varve::store {

Result<void> SegmentOutput::check_space() {
  if (options_.admitted) return {};
  VARVE_TRY_ASSIGN(const SpaceInfo space, store_.space());
  const std::uint64_t kept = reserved_bytes(space) + format::kContainerBytesMax;
  if (space.available_bytes() < kept) return full_disk(kept - space.available_bytes());
  return {};
}

Result<void> SegmentOutput::open_segment(std::uint64_t container_bytes) {
  std::uint64_t bytes_max = options_.segment_bytes_max;
  if (bytes_max == 0) bytes_max = store_.segment_bytes(stored_bytes());
  if (options_.file_per_container) bytes_max = 0;
  if (file_ && segment_offset_ + container_bytes > bytes_max) file_.reset();
  if (file_) return {};
  segment_offset_ = 0;
  while (!file_) {
    VARVE_TRY_ASSIGN(segment_, options_.numbers->take_segment());
    if (options_.volume) segment_ = as_volume(segment_);
    auto created = store_.create(segment_);  // Empties a file named by no record.
    // A folder with the segment's name is not Varve's, so the file takes the next number.
    if (!created && created.error().code() == ErrorCode::kIsDirectory) continue;
    {
      const std::lock_guard lock(mutex_);
      segments_.push_back(segment_);
    }
    VARVE_TRY_ASSIGN(file_, std::move(created));
  }
  return {};
}

Result<format::ContainerRecord> SegmentOutput::append(const format::ContainerHeader& container,
                                                      std::span<const std::byte> header_bytes,
                                                      std::span<const std::byte> data_bytes) {
  const std::uint64_t bytes = container.stored_bytes();
  VARVE_TRY(open_segment(bytes));
  const std::array<std::span<const std::byte>, 2> parts = {header_bytes, data_bytes};
  VARVE_TRY(file_->append(parts));
  const auto record = format::ContainerRecord::of(container, segment_, segment_offset_);
  {
    const std::lock_guard lock(mutex_);
    stored_bytes_ += bytes;
    unsynced_[segment_] = record.end();
  }
  segment_offset_ += bytes;
  return record;
}

Result<void> SegmentOutput::sync() {
  const std::lock_guard one(sync_mutex_);
  std::map<SegmentNumber, std::uint64_t> segments;
  {
    const std::lock_guard lock(mutex_);
    segments = unsynced_;
  }
  for (const auto& [segment, end] : segments) {
    if (sync_failed_.contains(segment)) {
      VARVE_TRY(rewrite_containers(store_, codec_, segment, end));
    }
    if (auto synced = store_.sync(segment); !synced) {
      sync_failed_.insert(segment);
      return synced;
    }
    sync_failed_.erase(segment);
  }
  if (!segments.empty()) {
    VARVE_TRY(store_.sync_names(options_.volume ? StoredKind::kVolumes : StoredKind::kSegments));
  }
  const std::lock_guard lock(mutex_);
  for (const auto& synced : segments) {
    const auto it = unsynced_.find(synced.first);
    if (it->second == synced.second) unsynced_.erase(it);  // Else the segment has grown since.
  }
  return {};
}

std::uint64_t SegmentOutput::stored_bytes() const {
  const std::lock_guard lock(mutex_);
  return stored_bytes_;
}

std::vector<SegmentNumber> SegmentOutput::segments() const {
  const std::lock_guard lock(mutex_);
  return segments_;
}

}  // namespace varve::store

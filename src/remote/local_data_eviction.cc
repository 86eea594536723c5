// SPDX-License-Identifier: Apache-2.0
// Evicts data files: removes files from the writer's disk that the object store has.
// docs/ORDERING.md O51.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "remote/local_data.h"
#include "remote/staged_data.h"

namespace varve::remote {

struct LocalData::Candidate {
  LocalFile file;
  std::uint64_t used = 0;
};

// Returns the data files on the disk in the order of eviction.
Result<std::vector<LocalData::Candidate>> LocalData::candidates() {
  VARVE_TRY_ASSIGN(auto on_disk, list_local_files(files_, root_));
  std::vector<Candidate> found;
  for (auto& file : on_disk) found.push_back({std::move(file), 0});
  const std::lock_guard lock(mutex_);
  for (auto& one : found) {
    const auto used = used_.find(one.file.path);
    if (used != used_.end()) one.used = used->second;
    const auto [first, last] = readers_open_.equal_range(one.file.path);
    for (auto at = first; at != last; ++at) {
      one.used = std::max<std::uint64_t>(one.used, at->second->used_);
    }
  }
  // Segments hold the newest version's data, and arranging reads segments.
  std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.file.is_segment, a.used, a.file.path) <
           std::tie(b.file.is_segment, b.used, b.file.path);
  });
  return found;
}

// O51: the head has the whole file, and nothing on the disk is newer than the head.
Result<bool> LocalData::evict_one(const LocalFile& one) {
  const std::lock_guard lock(mutex_);
  if (writers_.contains(one.path) || !covered(one.path) || notes_->has_any(one.path)) return false;
  const auto bytes = files_.tree_bytes(full(one.path));
  if (!bytes || *bytes != covered_bytes(one.path)) return false;
  const auto removed = files_.remove(full(one.path));
  if (!removed) return removed.error();
  const auto [first, last] = readers_open_.equal_range(one.path);
  for (auto at = first; at != last; ++at) at->second->evict();
  readers_open_.erase(first, last);
  used_.erase(one.path);
  return true;
}

Result<std::uint64_t> LocalData::staged_bytes() {
  VARVE_TRY_ASSIGN(const auto found, list_local_files(files_, root_));
  VARVE_TRY_ASSIGN(std::uint64_t bytes, uncut_bytes(files_, root_));
  const std::lock_guard lock(mutex_);
  for (const auto& one : found) {
    const auto its = covered_bytes(one.path);
    if (one.bytes > its) bytes += one.bytes - its;
  }
  return bytes;
}

Result<Eviction> LocalData::evict(std::uint64_t bytes_max, std::uint64_t bytes_least) {
  Eviction done;
  if (notes_ == nullptr) return done;
  VARVE_TRY_ASSIGN(const auto found, candidates());
  for (const auto& one : found) done.local_bytes += one.file.bytes;
  for (const auto& [one, used] : found) {
    if (done.local_bytes <= bytes_max && done.bytes >= bytes_least) break;
    VARVE_TRY_ASSIGN(const bool is_evicted, evict_one(one));
    if (!is_evicted) continue;
    ++done.files;
    done.bytes += one.bytes;
    done.local_bytes -= one.bytes;
  }
  return done;
}

}  // namespace varve::remote

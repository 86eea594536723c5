// SPDX-License-Identifier: Apache-2.0
// Removes data files from the writer's folder that the object store has. docs/ORDERING.md O51.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "replica/local_data.h"

namespace varve::replica {

struct LocalData::Candidate {
  std::string path;
  std::uint64_t bytes = 0;
  bool is_segment = false;
  std::uint64_t used = 0;
};

// Returns the data files on the disk, those that are evicted first at the front.
Result<std::vector<LocalData::Candidate>> LocalData::candidates() {
  std::vector<std::string> folders{"pool"};
  const auto series = files_.list(full("series"));
  if (!series && series.error().code() != ErrorCode::kNotFound) return series.error();
  if (series) {
    for (const auto& name : *series) folders.push_back("series/" + name);
  }
  std::vector<Candidate> found;
  for (const auto& folder : folders) {
    for (const auto* const kind : {"/active", "/volumes"}) {
      const auto names = files_.list(full(folder + kind));
      if (!names) continue;  // No such folder, or a user's file.
      for (const auto& name : *names) {
        auto path = folder + kind + "/" + name;
        const auto bytes = files_.tree_bytes(full(path));
        if (!bytes) continue;  // Removed meanwhile.
        found.push_back({std::move(path), *bytes, kind == std::string("/active"), 0});
      }
    }
  }
  const std::lock_guard lock(mutex_);
  for (auto& one : found) {
    const auto used = used_.find(one.path);
    if (used != used_.end()) one.used = used->second;
    const auto [first, last] = readers_open_.equal_range(one.path);
    for (auto at = first; at != last; ++at) {
      one.used = std::max<std::uint64_t>(one.used, at->second->used_);
    }
  }
  // The newest version's data is in segments, and arranging reads them.
  std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.is_segment, a.used, a.path) < std::tie(b.is_segment, b.used, b.path);
  });
  return found;
}

// O51: the head has the whole file, and nothing that is on the disk is newer than the head.
Result<bool> LocalData::evict_one(const Candidate& one) {
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
  VARVE_TRY_ASSIGN(const auto found, candidates());
  std::uint64_t bytes = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& one : found) {
    const auto its = covered_bytes(one.path);
    if (one.bytes > its) bytes += one.bytes - its;
  }
  return bytes;
}

Result<Eviction> LocalData::evict(std::uint64_t bytes_max) {
  Eviction done;
  if (notes_ == nullptr) return done;
  VARVE_TRY_ASSIGN(const auto found, candidates());
  for (const auto& one : found) done.local_bytes += one.bytes;
  for (const auto& one : found) {
    if (done.local_bytes <= bytes_max) break;
    VARVE_TRY_ASSIGN(const bool is_evicted, evict_one(one));
    if (!is_evicted) continue;
    ++done.files;
    done.bytes += one.bytes;
    done.local_bytes -= one.bytes;
  }
  return done;
}

}  // namespace varve::replica

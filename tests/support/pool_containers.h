// SPDX-License-Identifier: Apache-2.0
// The stored chunks of a pool, and the folder of its index, for tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "index/pool_runs.h"
#include "index/stored_fingerprints.h"
#include "io/file_system.h"
#include "store/repository_names.h"
#include "support/index_samples.h"

namespace varve::index {

inline ChunkId pool_id(std::uint32_t birth, std::uint32_t ordinal) {
  return ChunkId::make(static_cast<VersionNumber>(kPoolBit | birth), ordinal);
}

inline PoolIndexFolder pool_index_folder(io::FileSystem& files, const std::string& directory) {
  static_cast<void>(files.make_directory(directory));
  return {{&files, directory, kPoolSeries, store::index_run_name},
          store::snapshot_name(VersionNumber{0}),
          [](std::string_view name) { return store::parse_index_run_name(name); }};
}

/// Containers of 64 consecutive ids. A content is a number. Thread-safe.
class PoolContainers final : public StoredFingerprints {
 public:
  static constexpr std::uint64_t kContainerChunks = 64;

  bool around(ChunkId id, const Visit& visit) override {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> chunks;
    {
      const std::lock_guard lock(mutex_);
      if (!content_.contains(id.value)) return false;
      const std::uint64_t first = id.value / kContainerChunks * kContainerChunks;
      const auto end = content_.lower_bound(first + kContainerChunks);
      chunks.assign(content_.lower_bound(first), end);
    }
    ++tables_read;
    for (const auto& [value, content] : chunks) visit(random_fingerprint(content), ChunkId{value});
    return true;
  }
  void store(ChunkId id, std::uint64_t content) {
    const std::lock_guard lock(mutex_);
    content_[id.value] = content;
  }
  void free(const base::IdRuns& ids) {
    const std::lock_guard lock(mutex_);
    for (const auto& run : ids.runs()) {
      content_.erase(content_.lower_bound(run.first.value),
                     content_.lower_bound(run.first.value + run.count));
    }
  }
  [[nodiscard]] std::optional<std::uint64_t> content_of(ChunkId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = content_.find(id.value);
    return found != content_.end() ? std::optional(found->second) : std::nullopt;
  }
  [[nodiscard]] base::IdRuns live() const {
    const std::lock_guard lock(mutex_);
    std::vector<base::IdRun> runs;
    runs.reserve(content_.size());
    for (const auto& [value, content] : content_) runs.push_back({ChunkId{value}, 1});
    return base::IdRuns::from(std::move(runs));
  }

  std::atomic<std::uint64_t> tables_read = 0;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> content_;
};

}  // namespace varve::index

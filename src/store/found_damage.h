// SPDX-License-Identifier: Apache-2.0
// Remembers the chunks that reads found damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/id_runs.h"
#include "base/ids.h"

namespace varve::store {

/// The chunks of a repository that reads of this process found damaged, by the ids in the
/// containers' tables. A damaged read is only a suspicion: the disk may return other bytes next
/// time. Thread-safe.
class FoundDamage {
 public:
  /// Limit of the runs of a store. Further chunks are left out: after the remembered chunks are in
  /// quarantine, the next read of a chunk that was left out finds the damage again.
  static constexpr std::size_t kRunsMax = 4096;

  /// Sets a function that note() calls, without a lock, for the first chunks, and whenever the
  /// number of chunks added so far has doubled. Call before the first note().
  void watch(std::function<void()> on_more) { on_more_ = std::move(on_more); }

  /// Adds chunks of a store.
  void note(StoreId store, const base::IdRuns& chunks);
  /// Returns true for the first call with a container: the caller then notes the chunks of the
  /// container, whose header cannot be read.
  [[nodiscard]] bool is_new(StoreId store, ContainerNumber container);
  /// Returns the chunks added since the last call. No set is empty.
  [[nodiscard]] std::map<StoreId, base::IdRuns> take();

 private:
  std::function<void()> on_more_;
  std::mutex mutex_;
  std::uint64_t added_ = 0;
  std::uint64_t next_call_ = 1;  // The value of added_ for the next call of on_more_.
  std::map<StoreId, base::IdRuns> chunks_;
  std::set<std::pair<StoreId, ContainerNumber>> containers_;
};

}  // namespace varve::store

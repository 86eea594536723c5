// SPDX-License-Identifier: Apache-2.0
// Merges containers of the pool of which the versions use little, so that the rest of their space
// can be freed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/pool_records.h"
#include "layout/chunk_mover.h"
#include "layout/container_use.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::layout {

struct PoolMergerParts {
  PoolStore* pool = nullptr;
  const meta::Env* catalog = nullptr;
  /// Containers of which the versions use a smaller share are merged, in thousandths.
  std::uint32_t live_permille_max = 300;
  /// Raw size of the containers of one step. Seals and deletions wait for a step.
  std::uint64_t step_bytes_max = 32U << 20;
  std::function<bool()> stop{};  ///< Asked before each step; may be empty.
  /// Called after each commit, before the first file is removed; may be empty.
  std::function<void()> before_freeing{};
  /// Called after each step, which dropped these chunks.
  std::function<void(const MoveOutcome&, const base::IdRuns& dropped)> after_step{};
};

/// Copies the chunks in use of sparse containers to new containers, and frees the old ones. Leaves
/// out a container that an open version pins. A step merges containers of one birth, and puts
/// chunks next to each other that the same versions use (GCCDF's order): they go together later.
///
/// No chunk changes its id, so no tree and no recipe changes. The versions' records of chunks say
/// what is used; a step fails unless as many versions use a container as it has users.
class PoolMerger {
 public:
  explicit PoolMerger(PoolMergerParts parts) : parts_(std::move(parts)) {}

  /// Does the work that the last deletions left. Returns false if it was stopped before the end.
  /// Errors: kNoSpace; kCorrupt if the records contradict each other. Nothing is lost then.
  [[nodiscard]] Result<bool> run();

 private:
  /// A container that may be sparse.
  struct Candidate {
    ContainerNumber number{};
    VersionNumber birth{};
    std::uint64_t raw_bytes = 0;
  };

  [[nodiscard]] Result<std::vector<Candidate>> find_candidates() const;
  [[nodiscard]] Result<void> merge(const std::vector<Candidate>& candidates);
  [[nodiscard]] static std::vector<base::IdRun> in_order_of_use(const ContainerUse& use);
  [[nodiscard]] static Result<void> update(meta::WriteTxn& txn, const ContainerUse& use,
                                           const std::set<ContainerNumber>& containers);

  const PoolMergerParts parts_;
};

}  // namespace varve::layout

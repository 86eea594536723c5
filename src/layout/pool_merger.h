// SPDX-License-Identifier: Apache-2.0
// Merges sparse containers of the pool, so that the unused space can be freed.
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
  /// Containers with a smaller used share are merged, in thousandths.
  std::uint32_t live_permille_max = 300;
  /// Raw size of the containers of one step. Seals and deletions wait for a step.
  std::uint64_t step_bytes_max = 32U << 20;
  std::function<bool()> stop{};  ///< Called before each step; may be empty.
  /// Called after each commit, before the first file is removed; may be empty.
  std::function<void()> before_freeing{};
  /// Called after each step with the chunks dropped in the step.
  std::function<void(const MoveOutcome&, const base::IdRuns& dropped)> after_step{};
};

/// Copies the used chunks of sparse containers to new containers, and frees the old containers.
/// Leaves out a container pinned by an open version. A step merges containers of one birth. Chunks
/// used by the same versions become neighbours (GCCDF's order), because they will be deleted
/// together.
///
/// No chunk changes its id, so no tree and no recipe changes. The use is taken from the versions'
/// records of chunks. A step fails unless the number of versions using a container equals the
/// container's recorded number of users.
class PoolMerger {
 public:
  explicit PoolMerger(PoolMergerParts parts) : parts_(std::move(parts)) {}

  /// Merges the containers that the last deletions made sparse. Returns false if stopped before the
  /// end.
  /// Errors: kNoSpace; kCorrupt if the records contradict each other. No data is lost then.
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

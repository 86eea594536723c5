// SPDX-License-Identifier: Apache-2.0
// The rewriting policies: select the duplicates that a version stores again in the pool, so that a
// restore of the version reads fewer containers (Fu et al., ATC'14; Lillibridge et al., FAST'13;
// Kaczmarczyk et al., SYSTOR'12). All policies rewrite only copies in the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ingest/dedup_policy.h"
#include "varve/rewrite.h"

namespace varve::ingest {

/// A version's use of a container in the pool.
struct ContainerUse {
  ContainerNumber container{};
  std::uint64_t referenced_bytes = 0;  ///< Chunks referenced by the version, each counted once.
  std::uint64_t raw_bytes = 0;         ///< All chunks of the container.
};

/// Properties of a series' newest sealed version, for the policy of the next version.
struct RewriteInput {
  std::vector<ContainerUse> containers;  ///< Containers of the pool, each once, in any order.
  std::uint64_t logical_bytes = 0;       ///< Size of the version's files.
};

/// Counts the containers by utilisation.
[[nodiscard]] UtilisationHistogram utilisation_histogram(std::span<const ContainerUse> containers);

/// A policy for storing duplicates again, for one version. PlacementPolicy counts the effects.
class RewritePolicy : public DedupPolicy {
 public:
  [[nodiscard]] Wants wants() const final { return Wants::kContainers; }
  /// Returns the number of sparse containers inherited by the version, to be rewritten.
  [[nodiscard]] std::size_t sparse_containers() const { return sparse_containers_; }

 protected:
  void count_sparse(std::size_t containers) { sparse_containers_ = containers; }

 private:
  std::size_t sparse_containers_ = 0;
};

/// Creates the policy for the next version of a series. Returns null for Rewrite::kNone.
[[nodiscard]] std::unique_ptr<RewritePolicy> make_rewrite_policy(Rewrite rewrite,
                                                                 const RewriteInput& input);

}  // namespace varve::ingest

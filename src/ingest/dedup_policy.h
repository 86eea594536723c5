// SPDX-License-Identifier: Apache-2.0
// The decision whether a file refers to the stored copy of a chunk, or stores the chunk again.
// Storing again costs space and keeps the chunks of a restore together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"
#include "varve/types.h"

namespace varve::ingest {

/// A chunk about to be committed. Within a segment, candidates are in the order of writing.
struct DedupCandidate {
  Fingerprint fingerprint{};
  std::uint32_t bytes = 0;
  /// The stored copy; nullopt for a chunk that was not stored before this segment.
  std::optional<ChunkId> stored;
  /// Number of the container that holds the copy; nullopt if it is unknown, for example because
  /// the container is not written yet. Always nullopt without DedupPolicy::Wants::kContainers.
  std::optional<ContainerNumber> container;
};

enum class DedupDecision : std::uint8_t {
  kRefer,       ///< The recipe gets the id of the stored copy.
  kStoreAgain,  ///< The recipe does not refer to this copy. See DedupPolicy::decide().
};

/// Decides about duplicates, a segment of chunks at a time. The pipeline calls it from one thread
/// at a time. A policy may keep state from segment to segment.
class DedupPolicy {
 public:
  /// The information that a policy needs. The pipeline collects nothing more.
  enum class Wants : std::uint8_t {
    kNothing,     ///< It is never asked: every duplicate refers to the stored copy.
    kChunks,      ///< Candidates without containers.
    kContainers,  ///< Candidates with containers, at the cost of locating each stored copy.
  };

  virtual ~DedupPolicy() = default;
  /// Returns the same value for the policy's whole life.
  [[nodiscard]] virtual Wants wants() const = 0;
  /// Decides about a segment. `decisions` has the size of `segment` and is filled with kRefer. The
  /// pipeline ignores the decision for a candidate without a stored copy.
  ///
  /// For kStoreAgain, the pipeline stores the chunk under a new id. Later duplicates, in this
  /// segment and in the next ones, refer to the new copy, and so does a later candidate of this
  /// segment with kStoreAgain: a segment stores a chunk at most once. If the index cannot hold the
  /// new id (FingerprintIndex::replace()), later duplicates find the old copy, and each kStoreAgain
  /// stores one more.
  ///
  /// After an error, such as a full disk, the pipeline asks again about the rest of the segment.
  virtual void decide(std::span<const DedupCandidate> segment,
                      std::span<DedupDecision> decisions) = 0;
};

/// Always refers to the stored copy, as a lineage does: its arranger keeps chunks together. Costs
/// nothing.
class AlwaysRefer final : public DedupPolicy {
 public:
  [[nodiscard]] Wants wants() const override { return Wants::kNothing; }
  void decide(std::span<const DedupCandidate> /*segment*/,
              std::span<DedupDecision> /*decisions*/) override {}
};

}  // namespace varve::ingest

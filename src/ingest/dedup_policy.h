// SPDX-License-Identifier: Apache-2.0
// The decision whether a file refers to the stored copy of a chunk, or stores the chunk again.
// Storing again costs space and keeps the chunks of a restore together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve::ingest {

/// A chunk about to be committed. Candidates are in the order of writing.
struct DedupCandidate {
  Fingerprint fingerprint{};
  std::uint32_t bytes = 0;
  /// The stored copy; nullopt for a chunk not stored before the segment.
  std::optional<ChunkId> stored;
  /// Number of the container with the copy; nullopt if unknown, for example because the container
  /// is not written yet. Always nullopt without DedupPolicy::Wants::kContainers.
  std::optional<ContainerNumber> container;
  /// True if there is no stored copy here, but another series has a copy (see
  /// FingerprintIndex::find_elsewhere()). Always false without DedupPolicy::Wants::kContainers.
  bool elsewhere = false;
};

enum class DedupDecision : std::uint8_t {
  kRefer,       ///< The recipe gets the id of the stored copy.
  kStoreAgain,  ///< The recipe does not refer to the stored copy. See DedupPolicy::decide().
  kShare,       ///< For a chunk without a stored copy: store the chunk in the pool.
};

/// The outcome for a number of chunks. All bytes are raw.
struct DedupTally {
  std::uint64_t fresh_chunks = 0;  ///< Chunks stored for the first time, shared chunks included.
  std::uint64_t fresh_bytes = 0;
  std::uint64_t shared_chunks = 0;  ///< Stored for the first time in the pool, as kShare says.
  std::uint64_t shared_bytes = 0;
  std::uint64_t kept_chunks = 0;  ///< Duplicates with a reference to a stored copy.
  std::uint64_t kept_bytes = 0;
  std::uint64_t kept_in_pool_chunks = 0;  ///< The part of kept_chunks with a copy in the pool.
  std::uint64_t kept_in_pool_bytes = 0;
  std::uint64_t again_chunks = 0;  ///< Duplicates stored again.
  std::uint64_t again_bytes = 0;
};

/// Decides about duplicates, a segment of chunks at a time. The pipeline calls the policy from one
/// thread at a time. A policy may keep state from segment to segment.
class DedupPolicy {
 public:
  /// The information needed by a policy. The pipeline collects nothing more.
  enum class Wants : std::uint8_t {
    kNothing,     ///< The policy is never asked: every duplicate refers to the stored copy.
    kChunks,      ///< Candidates without containers.
    kContainers,  ///< Candidates with containers, at the cost of locating each stored copy.
  };

  virtual ~DedupPolicy() = default;
  /// Returns the same value for the policy's whole life.
  [[nodiscard]] virtual Wants wants() const = 0;
  /// Returns the size of the look-ahead: the chunks after a segment that the policy should see
  /// before deciding. The pipeline shows fewer chunks when the data ends, when a caller waits for
  /// the data to be stored, and when the memory for batches in flight is full. Returns the same
  /// value for the policy's whole life.
  [[nodiscard]] virtual std::size_t look_ahead_bytes() const { return 0; }

  /// Decides about a segment: the first `decisions.size()` of `candidates`. The remaining
  /// candidates follow the segment in the order of writing; the policy will decide about the
  /// look-ahead later, possibly with other copies. `decisions` is filled with kRefer. For a
  /// candidate without a stored copy, the pipeline asks only whether the decision is kShare.
  ///
  /// For kStoreAgain, the pipeline stores the chunk under a new id, in the pool if the layout has a
  /// pool. Later duplicates, in the same and in later segments, refer to the new copy, and so does
  /// a later candidate of the segment with kStoreAgain: a segment stores a chunk at most once. If
  /// the index cannot hold the new id (FingerprintIndex::replace()), later duplicates find the old
  /// copy, and each kStoreAgain stores the chunk again.
  ///
  /// After an error, such as a full disk, the pipeline asks again about the rest of the segment.
  virtual void decide(std::span<const DedupCandidate> candidates,
                      std::span<DedupDecision> decisions) = 0;

  /// Receives the outcome for a segment; after an error, for the part before the error.
  virtual void on_stored(const DedupTally& /*tally*/) {}

  /// Returns the counts of the version. Thread-safe: the pipeline may commit meanwhile.
  [[nodiscard]] virtual RewriteCounts counts() const { return {}; }
  /// Adds the counts of the same version by an earlier process, before the first decision. The
  /// policy's sparse containers stay unchanged.
  virtual void continue_from(const RewriteCounts& /*earlier*/) {}
};

/// Always refers to the stored copy, as a lineage does: its arranger keeps chunks together. Costs
/// nothing.
class AlwaysRefer final : public DedupPolicy {
 public:
  [[nodiscard]] Wants wants() const override { return Wants::kNothing; }
  void decide(std::span<const DedupCandidate> /*candidates*/,
              std::span<DedupDecision> /*decisions*/) override {}
};

}  // namespace varve::ingest

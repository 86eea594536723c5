// SPDX-License-Identifier: Apache-2.0
// The neighbour index: the chunks of the previous version and of the one being written
// (MFDedup's neighbour-duplicate-focus index, FAST'21 §3.1).
//
// Each chunk takes 24 bytes: 20 bytes of its SHA-256, and its rank, from which the index derives
// the id. A match of 160 bits counts as equality, as in every store that identifies chunks by
// SHA-1-sized hashes. SHA-256 avoids SHA-1's known collisions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id_runs.h"
#include "index/fingerprint_index.h"
#include "index/index_metrics.h"
#include "varve/result.h"

namespace varve::index {

/// An open-addressed table, ordered by fingerprint, at most 3/4 full.
///
/// Ranks below base.size() are positions in `base`, the previous version's chunks. Higher ranks are
/// ordinals of the version being written.
class NeighbourIndex final : public FingerprintIndex {
 public:
  /// Creates an empty index over `base` for the version `own`; insert() fills it. At first it has
  /// room for a million chunks at most, because a damaged catalog may claim more chunks than memory
  /// holds.
  NeighbourIndex(base::IdRuns base, VersionNumber own);

  /// Decodes the snapshot of version `number` as the index of the version `own`.
  /// Errors: kCorrupt if it is damaged, or belongs to another series or version; the caller then
  /// builds the index from containers.
  [[nodiscard]] static Result<std::unique_ptr<NeighbourIndex>> decode(std::string_view snapshot,
                                                                      SeriesId series,
                                                                      VersionNumber number,
                                                                      VersionNumber own);
  /// Returns the same index over other chunks, `base`. Leaves out the entries of chunks that are
  /// not in it. Must be called before the first insert() and retire().
  [[nodiscard]] std::unique_ptr<NeighbourIndex> over(const base::IdRuns& base) const;
  /// Encodes the entries whose ids are in `live` as the snapshot of version `number`.
  /// Format: docs/FORMAT.md §8.
  [[nodiscard]] std::string encode(SeriesId series, VersionNumber number,
                                   const base::IdRuns& live) const;

  NeighbourIndex(const NeighbourIndex&) = delete;
  NeighbourIndex& operator=(const NeighbourIndex&) = delete;
  ~NeighbourIndex() override;

  /// Counts the entries, and all lookups from now on. Must be called at most once, before the first
  /// lookup.
  /// Lifetime: `metrics` must outlive the index, or else the counting.
  void count_in(const IndexMetrics& metrics);
  /// Ends the counting. Must not be called during a lookup.
  void stop_counting();

  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override;
  void insert(const Fingerprint& fingerprint, ChunkId id) override;
  void replace(const Fingerprint& fingerprint, ChunkId id) override;
  [[nodiscard]] std::size_t size() const override { return used_; }
  [[nodiscard]] std::uint32_t covers(ChunkId first, std::uint32_t count) const override;
  /// Hides these chunks of the neighbours from find() and covers(). A find() that runs meanwhile
  /// may still return one. The caller must call it from one thread at a time. Returns those of the
  /// chunks that were not hidden before.
  base::IdRuns retire(const base::IdRuns& ids);
  /// Reverts retire() for these chunks.
  void restore(const base::IdRuns& ids);
  /// Returns the chunks that the index covers besides those of the version being written.
  [[nodiscard]] const base::IdRuns& base() const { return base_; }

 private:
  static constexpr std::size_t kTagBytes = 20;
  static constexpr std::uint32_t kEmpty = 0xffffffff;
  struct Slot {
    std::array<std::byte, kTagBytes> tag{};
    std::uint32_t rank = kEmpty;
  };
  static_assert(sizeof(Slot) == 24);

  NeighbourIndex(base::IdRuns base, VersionNumber own, std::size_t slots)
      : base_(std::move(base)), own_(own), slots_(slots) {}
  [[nodiscard]] std::size_t home(const std::byte* tag) const;
  /// Returns the place of the entry that find() uses; nullopt without one.
  [[nodiscard]] std::optional<std::size_t> place_of(const Fingerprint& fingerprint) const;
  /// Returns the rank of a covered chunk.
  [[nodiscard]] std::uint64_t rank_of(ChunkId id) const;
  void put(const Slot& slot);
  void grow();
  [[nodiscard]] ChunkId id_of(std::uint32_t rank) const;

  void set_retired(base::IdRuns ids);
  [[nodiscard]] bool is_retired(ChunkId id) const {
    const base::IdRuns* const retired = retired_.load(std::memory_order_acquire);
    return retired != nullptr && retired->contains(id);
  }

  base::IdRuns base_;
  VersionNumber own_;
  std::vector<Slot> slots_;
  std::atomic<const base::IdRuns*> retired_{nullptr};
  // Every set that retired_ ever pointed to: a lookup may still use an older one.
  std::vector<std::unique_ptr<const base::IdRuns>> retired_sets_;
  std::size_t used_ = 0;
  const IndexMetrics* metrics_ = nullptr;
};

}  // namespace varve::index

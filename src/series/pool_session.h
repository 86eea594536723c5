// SPDX-License-Identifier: Apache-2.0
// The index of one open version: its neighbours, and the pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/coding.h"
#include "index/fingerprint_index.h"
#include "index/pool_index.h"
#include "index/tag_table.h"
#include "layout/pool_store.h"
#include "series/known_elsewhere.h"
#include "series/pool.h"
#include "varve/placement.h"
#include "varve/types.h"

namespace varve::series {

/// Asks the neighbour index, then the pool's index. Pins the containers of the returned chunks, so
/// that the containers stay while the version is open.
///
/// In a series that stores new chunks itself, a chunk of the pool is preferred to the series' own
/// copy: another series has promoted the chunk. So the own copy is freed with the versions that
/// refer to the own copy.
///
/// New chunks of the version in the pool are visible to the version at once, and to other versions
/// from publish() on: another version must not refer to a chunk that a crash may lose. Thread-safe
/// as FingerprintIndex, and publish() is thread-safe.
class PoolSession final : public index::FingerprintIndex {
 public:
  /// Lifetime: `pool` outlives the object.
  PoolSession(std::shared_ptr<index::FingerprintIndex> neighbours, Pool& pool,
              index::PoolIndex& index, const layout::PoolOwner& owner, Placement placement);
  PoolSession(const PoolSession&) = delete;
  PoolSession& operator=(const PoolSession&) = delete;
  ~PoolSession() override;

  void find(std::span<const Fingerprint> fingerprints,
            std::span<std::optional<ChunkId>> ids) const override;
  void find_elsewhere(std::span<const Fingerprint> fingerprints,
                      std::span<bool> known) const override;
  void insert(const Fingerprint& fingerprint, ChunkId id) override;
  void replace(const Fingerprint& fingerprint, ChunkId id) override;
  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::uint32_t covers(ChunkId first, std::uint32_t count) const override;

  /// Tells the pool's index the version's new chunks on disk and in the catalog: chunks of the
  /// birth with an ordinal below `synced`.
  void publish(VersionNumber birth, std::uint32_t synced);
  /// Ends the use of the pool. find() then knows only the neighbours and the version's own chunks.
  void close();

 private:
  struct TagHash {
    std::size_t operator()(const index::Tag& tag) const {
      return base::load_le<std::size_t>(tag.data());
    }
  };
  /// Returns whether to look for a copy in the pool although a neighbour has the chunk.
  [[nodiscard]] bool may_move(ChunkId known) const {
    return placement_ == Placement::kLineagePool && !is_pool(known);
  }
  /// Returns how many chunks from `id` on are in one container to which the version may refer.
  [[nodiscard]] std::uint32_t usable(ChunkId id, std::uint32_t count) const;
  void announce() const;

  static constexpr std::size_t kAnnouncedMax = 4096;

  const std::shared_ptr<index::FingerprintIndex> neighbours_;
  Pool& pool_;
  index::PoolIndex& index_;
  const layout::PoolOwner owner_;
  const Placement placement_;
  const index::StreamNumber stream_;
  std::atomic<bool> closed_{false};

  // Used only by the thread of find() and insert().
  mutable KnownElsewhere elsewhere_;
  std::vector<Fingerprint> own_;  // New chunks in the series' own store.

  mutable std::mutex mutex_;  // Guards the members below.
  // Unpublished new chunks in the pool, by fingerprint and by id.
  std::unordered_map<index::Tag, ChunkId, TagHash> unpublished_;
  std::map<ChunkId, std::pair<Fingerprint, bool>> waiting_;  // true: replaces an older copy.
};

}  // namespace varve::series

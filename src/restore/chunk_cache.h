// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "restore/memory_meter.h"
#include "restore/restore_cache.h"

namespace varve::restore {

/// Keeps the chunks that the look-ahead window needs again (F-chunks), ordered by next use. With
/// `keeps_past`, also keeps used chunks outside the window (P-chunks), ordered by last use. When
/// memory is short, evicts the least recently used P-chunk first, then the F-chunk with the
/// farthest next use. Source: ALACC, FAST'18 §4.
class ChunkCache final : public RestoreCache {
 public:
  /// Memory of a chunk beside its bytes.
  static constexpr std::size_t kChunkOverheadBytes = 128;

  struct Counters {
    std::uint64_t future_bytes = 0;  ///< Bytes of the cached F-chunks.
    std::uint64_t past_bytes = 0;    ///< Bytes of the cached P-chunks.
    std::size_t past_chunks = 0;     ///< Number of cached P-chunks.
    /// Bytes of all chunks that became F-chunks since the start.
    std::uint64_t future_added_bytes = 0;
  };

  ChunkCache(MemoryMeter* meter, bool keeps_past) : meter_(meter), keeps_past_(keeps_past) {}
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;
  ~ChunkCache() override { meter_->remove(bytes_); }

  void set_bytes_max(std::size_t bytes_max) override;
  [[nodiscard]] std::size_t room() const override;
  [[nodiscard]] std::span<const std::byte> find(const ChunkUse& use) override;
  [[nodiscard]] bool contains(const ChunkUse& use) const override {
    return chunks_.contains(use.id.value);
  }
  [[nodiscard]] bool keeps_used() const override { return keeps_past_; }
  void on_used(ChunkId id, std::uint64_t next_use) override;
  void on_ahead(ChunkId id, std::uint64_t position) override;
  void offer(ChunkId id, std::span<const std::byte> raw, std::uint64_t next_use,
             bool is_used) override;

  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Returns the memory in use, with the overhead of each chunk.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::uint64_t next_use = kNever;          // kNever for a P-chunk.
    std::list<std::uint64_t>::iterator past;  // Place in `past_`; valid only for a P-chunk.
  };
  using Map = std::unordered_map<std::uint64_t, Chunk>;

  void link(Map::iterator it, std::uint64_t next_use);
  void unlink(Map::iterator it);
  void forget(Map::iterator it);
  [[nodiscard]] bool make_room(std::size_t bytes, std::uint64_t next_use);

  MemoryMeter* const meter_;
  const bool keeps_past_;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  Counters counters_;
  Map chunks_;                                     // The chunks by id.
  std::map<std::uint64_t, std::uint64_t> future_;  // Next use → id.
  std::list<std::uint64_t> past_;                  // Ids, most recently used first.
};

}  // namespace varve::restore

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "restore/memory_meter.h"

namespace varve::restore {

/// Decoded chunks that the look-ahead window needs again, ordered by the position of their
/// next use. When memory is short the farthest goes first (Belady). Not synchronised.
class ChunkCache {
 public:
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };

  explicit ChunkCache(MemoryMeter* meter) : meter_(meter) {}
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;
  ~ChunkCache();

  /// Evicts until `bytes_max` is kept from now on.
  void set_bytes_max(std::size_t bytes_max);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t room() const { return bytes_max_ > bytes_ ? bytes_max_ - bytes_ : 0; }

  [[nodiscard]] bool contains(std::uint64_t next_use) const { return chunks_.contains(next_use); }
  /// Position of the nearest next use; only valid if !empty().
  [[nodiscard]] std::uint64_t nearest() const { return chunks_.begin()->first; }
  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  /// The bytes of the chunk that is next needed at `next_use`, which must be here.
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t next_use) const;

  /// Copies a chunk in, unless all that is kept is needed sooner.
  void insert(std::uint64_t next_use, std::span<const std::byte> bytes);
  /// The chunk needed at `from` is needed again at `to`.
  void move(std::uint64_t from, std::uint64_t to);
  void erase(std::uint64_t next_use);

 private:
  using Map = std::map<std::uint64_t, Chunk>;
  void forget(Map::iterator it);

  MemoryMeter* const meter_;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  Map chunks_;
};

}  // namespace varve::restore

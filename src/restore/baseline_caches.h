// SPDX-License-Identifier: Apache-2.0
// The caches of the baseline engines, used for comparison in benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "layout/layout.h"
#include "restore/memory_meter.h"
#include "restore/restore_cache.h"

namespace varve::restore {

/// Keeps every chunk read. Evicts the least recently used chunk first.
class LruChunkCache final : public RestoreCache {
 public:
  explicit LruChunkCache(MemoryMeter* meter) : meter_(meter) {}
  LruChunkCache(const LruChunkCache&) = delete;
  LruChunkCache& operator=(const LruChunkCache&) = delete;
  ~LruChunkCache() override { meter_->remove(bytes_); }

  void set_bytes_max(std::size_t bytes_max) override;
  [[nodiscard]] std::size_t room() const override { return bytes_max_; }
  [[nodiscard]] std::span<const std::byte> find(const ChunkUse& use) override;
  [[nodiscard]] bool contains(const ChunkUse& use) const override {
    return chunks_.contains(use.id.value);
  }
  void on_used(ChunkId /*id*/, std::uint64_t /*next_use*/) override {}
  [[nodiscard]] bool keeps_containers() const override { return true; }
  void offer(ChunkId id, std::span<const std::byte> raw, std::uint64_t next_use,
             bool is_used) override;

 private:
  struct Chunk {
    ChunkId id;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  void evict(std::size_t bytes);

  MemoryMeter* const meter_;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  std::list<Chunk> order_;  // Most recently used first.
  std::unordered_map<std::uint64_t, std::list<Chunk>::iterator> chunks_;
};

/// Keeps whole containers. Without a source, evicts the least recently used container first. With a
/// source, locates the chunks of the window and evicts the container whose next use after the areas
/// under assembly is farthest (Belady). Does not keep a new container at all if the window needs
/// every cached container sooner. Containers unused by the window go first of all.
class ContainerCache final : public RestoreCache {
 public:
  /// `source` is nullptr for eviction by last use; otherwise it must outlive the cache.
  ContainerCache(MemoryMeter* meter, layout::ChunkSource* source)
      : meter_(meter), source_(source) {}
  ContainerCache(const ContainerCache&) = delete;
  ContainerCache& operator=(const ContainerCache&) = delete;
  ~ContainerCache() override { meter_->remove(bytes_); }

  void set_bytes_max(std::size_t bytes_max) override;
  [[nodiscard]] std::size_t room() const override { return bytes_max_; }
  [[nodiscard]] std::span<const std::byte> find(const ChunkUse& use) override;
  [[nodiscard]] bool contains(const ChunkUse& use) const override;
  void on_used(ChunkId /*id*/, std::uint64_t /*next_use*/) override {}
  void on_ahead(ChunkId id, std::uint64_t position) override;
  [[nodiscard]] bool keeps_containers() const override { return true; }
  void offer_frame(const format::ContainerHeader& header, std::uint32_t frame,
                   std::span<const std::byte> raw) override;

  void on_entered(std::uint64_t position) override;

 private:
  struct Place {
    ChunkId id;
    std::uint32_t frame = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct Container {
    ContainerNumber number{};
    std::vector<Place> chunks;
    std::vector<std::unique_ptr<std::byte[]>> frames;  // nullptr for a missing frame.
    std::size_t size = 0;
  };
  using Order = std::list<Container>;

  [[nodiscard]] const Place* place(const Container& container, const ChunkUse& use) const;
  [[nodiscard]] std::uint64_t next_use(ContainerNumber container) const;
  [[nodiscard]] Order::iterator victim();
  void forget(Order::iterator it);
  void evict(std::size_t bytes);
  [[nodiscard]] bool make_room(const format::ContainerHeader& header);

  MemoryMeter* const meter_;
  layout::ChunkSource* const source_;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  Order order_;  // Most recently used first.
  std::unordered_map<ContainerNumber, Order::iterator> containers_;

  struct Stretch {
    std::uint64_t position = 0;  // Position of the first chunk of the stretch.
    ContainerNumber container{};
  };
  // The stretches of the window, each within one container, and the start positions of the
  // stretches of each container.
  std::deque<Stretch> sequence_;
  std::unordered_map<ContainerNumber, std::deque<std::uint64_t>> uses_;
  std::optional<layout::LocationRun> located_;
};

}  // namespace varve::restore

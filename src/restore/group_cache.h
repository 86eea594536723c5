// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "restore/memory_meter.h"
#include "restore/restore_cache.h"

namespace varve::restore {

/// Keeps chunks that the look-ahead window needs again, in groups. A group holds the chunks of one
/// read unit (a frame, or a whole container) needed by one future area. Only a complete group saves
/// the read of the unit. When memory is short, the cache evicts the group that takes the most
/// memory for the longest time per byte of saved reading. The read that replaces the evicted group
/// brings the later chunks of the unit too, so the later groups of the unit are evicted as well.
///
/// The engine announces all chunks to be read for an area, and the cache then decides once which
/// chunks to keep. So the decision does not depend on the order in which frames arrive.
class GroupCache final : public RestoreCache {
 public:
  /// Memory of a chunk and of a group beside the chunk's bytes.
  static constexpr std::size_t kChunkOverheadBytes = 96;
  static constexpr std::size_t kGroupOverheadBytes = 192;

  explicit GroupCache(MemoryMeter* meter) : meter_(meter) {}
  GroupCache(const GroupCache&) = delete;
  GroupCache& operator=(const GroupCache&) = delete;
  ~GroupCache() override { meter_->remove(bytes_); }

  void set_bytes_max(std::size_t bytes_max) override;
  void set_area_chunks(std::uint64_t chunks) override;
  [[nodiscard]] std::size_t room() const override {
    return bytes_max_ > bytes_ ? bytes_max_ - bytes_ : 0;
  }
  [[nodiscard]] std::span<const std::byte> find(const ChunkUse& use) override;
  [[nodiscard]] bool contains(const ChunkUse& use) const override;
  void on_used(ChunkId id, std::uint64_t next_use) override;
  void on_entered(std::uint64_t position) override;
  [[nodiscard]] bool chooses_in_advance() const override { return true; }
  void on_planned(ChunkId id, const PlannedChunk& chunk) override;
  void on_all_planned() override;
  void offer(ChunkId id, std::span<const std::byte> raw, std::uint64_t next_use,
             bool is_used) override;

  /// Returns the memory in use, with all overhead.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Unit {
    ContainerNumber container{};
    std::uint32_t frame = 0;
    auto operator<=>(const Unit&) const = default;
  };
  struct Key {
    Unit unit;
    std::uint64_t area = 0;  // Number of the area, counted in chunks from the start of the stream.
    auto operator<=>(const Key&) const = default;
  };
  struct Group {
    std::vector<std::uint64_t> ids;
    std::size_t bytes = 0;
    std::size_t read_bytes = 0;   // Size of the read of the unit.
    bool is_before_read = false;  // Whether a later area reads the unit anyway.
  };
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;  // nullptr until the chunk is read.
    std::size_t size = 0;
    Key group;
    std::size_t read_bytes = 0;
  };
  using Groups = std::map<Key, Group>;
  using Chunks = std::unordered_map<std::uint64_t, Chunk>;
  struct ByArea {
    bool operator()(const Groups::iterator& a, const Groups::iterator& b) const {
      return a->first.area != b->first.area ? a->first.area < b->first.area : a->first < b->first;
    }
  };
  // The groups of similar cost per byte saved, ordered by the area that needs the group.
  using Class = std::set<Groups::iterator, ByArea>;

  [[nodiscard]] static double cost(const Group& group);
  [[nodiscard]] Class& class_of(const Group& group);
  void link(Chunks::iterator it, std::uint64_t next_use);
  void unlink(Chunks::iterator it);
  void forget(Chunks::iterator it);
  void forget_from(Groups::iterator group);
  void set_before_read(const Unit& unit, bool is_before_read);
  void add(std::size_t bytes);
  void remove(std::size_t bytes);
  [[nodiscard]] Groups::iterator worst();
  void evict();

  MemoryMeter* const meter_;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t area_chunks_ = 1;
  std::uint64_t now_ = 0;  // The first position behind the areas under assembly.
  Chunks chunks_;
  Groups groups_;
  std::array<Class, 64> classes_;
  std::vector<std::uint64_t> planned_;  // Ids of chunks that may still be missing.
};

}  // namespace varve::restore

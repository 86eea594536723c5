// SPDX-License-Identifier: Apache-2.0
// A table in memory from fingerprints to chunk ids.
//
// An entry takes 28 bytes: 20 bytes of the chunk's SHA-256, and the chunk id. A match of 160 bits
// counts as equality, as in every store that identifies chunks by SHA-1-sized hashes. SHA-256
// avoids SHA-1's known collisions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/coding.h"
#include "varve/types.h"

namespace varve::index {

/// First bytes of a chunk's fingerprint.
using Tag = std::array<std::byte, 20>;

inline Tag tag_of(const Fingerprint& fingerprint) {
  Tag tag;
  std::memcpy(tag.data(), fingerprint.data(), tag.size());
  return tag;
}

/// Maps a tag to one of `places` equal parts of all tags, in order.
inline std::uint64_t part_of(const Tag& tag, std::uint64_t places) {
  __extension__ using Wide = unsigned __int128;
  const auto prefix = __builtin_bswap64(base::load_le<std::uint64_t>(tag.data()));
  return static_cast<std::uint64_t>((static_cast<Wide>(prefix) * places) >> 64);
}

/// An entry of the index. The id is in two halves, so that an entry has no padding. No chunk has
/// birth 0: birth 0 marks an empty slot.
struct Entry {
  Tag tag{};
  std::uint32_t birth = 0;
  std::uint32_t ordinal = 0;

  Entry() = default;
  Entry(const Tag& entry_tag, ChunkId id)
      : tag(entry_tag), birth(static_cast<std::uint32_t>(id.birth())), ordinal(id.ordinal()) {}
  [[nodiscard]] ChunkId id() const {
    return ChunkId::make(static_cast<VersionNumber>(birth), ordinal);
  }
  [[nodiscard]] bool is_empty() const { return birth == 0; }
};
static_assert(sizeof(Entry) == 28);

/// An open-addressed table, ordered by tag, at most 3/4 full. Not thread-safe; but several threads
/// may call find() while nothing changes.
class TagTable {
 public:
  TagTable() : slots_(kSlotsMin) {}

  /// Returns the id of the first entry with this tag accepted by `accept`.
  template <typename Accept>
  [[nodiscard]] std::optional<ChunkId> find(const Tag& tag, Accept&& accept) const {
    for (std::size_t i = home(tag); !slots_[i].is_empty(); i = next(i)) {
      if (slots_[i].tag == tag && accept(slots_[i].id())) return slots_[i].id();
    }
    return std::nullopt;
  }
  /// Adds an entry, even if an entry with the same tag exists.
  void put(const Entry& entry);
  /// Changes the id of the entry with `tag` and `from` to `to`.
  void change(const Tag& tag, ChunkId from, ChunkId to);

  [[nodiscard]] std::size_t size() const { return used_; }
  /// Returns the memory of the table, in bytes.
  [[nodiscard]] std::size_t bytes() const { return slots_.size() * sizeof(Entry); }
  /// Returns the memory of the table after a further put(), in bytes.
  [[nodiscard]] std::size_t bytes_after_put() const {
    return (is_full() ? 2 : 1) * slots_.size() * sizeof(Entry);
  }
  /// Returns the entries, ascending by tag and then by id.
  [[nodiscard]] std::vector<Entry> sorted() const;
  /// Empties the table. Returns the entries, ascending by tag and then by id.
  [[nodiscard]] std::vector<Entry> take_sorted();
  /// Empties the table and keeps the memory.
  void clear();

 private:
  static constexpr std::size_t kSlotsMin = 16;
  [[nodiscard]] std::size_t home(const Tag& tag) const {
    return static_cast<std::size_t>(part_of(tag, slots_.size()));
  }
  [[nodiscard]] std::size_t next(std::size_t i) const { return i + 1 == slots_.size() ? 0 : i + 1; }
  [[nodiscard]] bool is_full() const { return (used_ + 1) * 4 > slots_.size() * 3; }
  void place(const Entry& entry);

  std::vector<Entry> slots_;
  std::size_t used_ = 0;
};

}  // namespace varve::index

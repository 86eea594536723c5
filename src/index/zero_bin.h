// SPDX-License-Identifier: Apache-2.0
// A bin of the Zero-Chunk index: the chunks that followed one hook in the streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/slot_heat.h"
#include "index/tag_table.h"
#include "varve/result.h"

namespace varve::index {

/// The rules for dropping entries of a bin.
struct BinRules {
  std::uint32_t heat_step = 255;  ///< Heat of a use: 2^N - 1 as published.
  /// Entries that a bin may hold before it reuses cold slots and drops cold entries. 0: as
  /// published, a bin that is more than half cold is built again without the cold entries.
  std::uint32_t entries_kept = 4096;
};

/// Entries by tag, each tag once, with heat. Not thread-safe.
///
/// A full bin reuses a cold slot. Without a cold slot, the bin is built again with twice the room.
/// So a bin grows as long as the entries are in use.
class ZeroBin {
 public:
  explicit ZeroBin(const BinRules& rules);

  [[nodiscard]] std::optional<ChunkId> find(const Tag& tag) const;
  /// Counts an access to an entry returned by find().
  void use(const Tag& tag);
  /// Adds an entry, or changes the id of the entry with the same tag. Counts an access.
  void put(const Entry& entry);
  void erase(const Tag& tag);

  [[nodiscard]] std::size_t size() const { return used_; }
  [[nodiscard]] std::size_t bytes() const {
    return slots_.capacity() * sizeof(Entry) + free_.capacity() * sizeof(Slot) +
           places_.capacity() * sizeof(Slot) + heat_.bytes();
  }
  [[nodiscard]] const std::vector<Entry>& slots() const { return slots_; }  ///< Some are empty.

  /// Appends the entries with their heats to `out`, encoded (docs/FORMAT.md §8).
  void encode(std::string& out) const;
  /// Errors: kCorrupt.
  [[nodiscard]] static Result<ZeroBin> decode(std::string_view bytes, const BinRules& rules);
  /// Adds an entry with its heat from a different bin. Counts no access.
  void take_over(const Entry& entry, std::uint32_t heat);
  [[nodiscard]] std::uint32_t heat_of(Slot slot) const { return heat_.heat(slot); }

 private:
  [[nodiscard]] Slot slot_of(const Tag& tag) const;
  [[nodiscard]] std::size_t home(const Tag& tag) const {
    return base::load_le<std::size_t>(tag.data() + 8) & (places_.size() - 1);
  }
  /// Returns a slot for a new entry.
  [[nodiscard]] Slot make_room();
  void insert_place(Slot slot);
  void erase_place(Slot slot);
  void erase_slot(Slot slot);
  /// Builds the bin again, as published, if most entries are cold.
  void drop_cold();
  /// Builds the bin again. Keeps the cold entries only if `keep_cold`.
  void rebuild(bool keep_cold);

  BinRules rules_;
  std::vector<Entry> slots_;
  std::vector<Slot> free_;
  std::vector<Slot> places_;  // Slots by tag; a power of two, at most half full.
  std::size_t room_ = 0;      // Maximum of slots, until the bin is built again.
  std::size_t used_ = 0;
  SlotHeat heat_;
};

}  // namespace varve::index

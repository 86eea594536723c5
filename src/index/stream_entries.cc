// SPDX-License-Identifier: Apache-2.0
#include "index/stream_entries.h"

#include <utility>

namespace varve::index {

namespace {

constexpr std::size_t kTableMin = 64;

}  // namespace

StreamEntries::StreamEntries(std::uint64_t uses_per_tick)
    : uses_per_tick_(uses_per_tick), table_(kTableMin) {}

std::size_t StreamEntries::home(Place place) const {
  return static_cast<std::size_t>(part_of(node(place).entry.tag, table_.size()));
}

// Returns the table's place of the tag, or the free place for the tag.
std::size_t StreamEntries::place_in_table(const Tag& tag) const {
  auto i = static_cast<std::size_t>(part_of(tag, table_.size()));
  while (table_[i] != 0 && node(table_[i]).entry.tag != tag) i = (i + 1) % table_.size();
  return i;
}

void StreamEntries::grow_table() {
  const auto old = std::exchange(table_, std::vector<Place>(table_.size() * 2));
  for (const Place place : old) {
    if (place != 0) table_[place_in_table(node(place).entry.tag)] = place;
  }
}

StreamEntries::Place StreamEntries::new_node() {
  if (free_ != 0) return std::exchange(free_, node(free_).older);
  if (places_ % kBlockNodes == 0) blocks_.push_back(std::make_unique<Block>());
  return ++places_;
}

void StreamEntries::link(Place place, StreamSlot slot) {
  List& list = lists_[slot];
  Node& its = node(place);
  its.stream = static_cast<std::uint16_t>(slot);
  its.newer = 0;
  its.older = list.newest;
  const auto tick = ++uses_ / uses_per_tick_;
  its.tick = static_cast<std::uint16_t>(tick);
  if (list.newest != 0) node(list.newest).newer = place;
  list.newest = place;
  if (list.oldest == 0) {
    list.oldest = place;
    list.oldest_tick = tick;
  }
  ++list.entries;
}

void StreamEntries::unlink(Place place) {
  const Node& its = node(place);
  List& list = lists_[its.stream];
  if (list.oldest == place && its.newer != 0) {
    list.oldest_tick += static_cast<std::uint16_t>(node(its.newer).tick - its.tick);
  }
  (its.newer != 0 ? node(its.newer).older : list.newest) = its.older;
  (its.older != 0 ? node(its.older).newer : list.oldest) = its.newer;
  --list.entries;
}

void StreamEntries::remove(Place place) {
  std::size_t hole = place_in_table(node(place).entry.tag);
  const auto size = table_.size();
  // Moves the entries after the hole that a search would not find across the hole.
  for (auto i = (hole + 1) % size; table_[i] != 0; i = (i + 1) % size) {
    const auto distance = [&](std::size_t from) { return (i + size - from) % size; };
    if (distance(home(table_[i])) < distance(hole)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = 0;
  unlink(place);
  node(place) = Node();
  node(place).older = free_;
  free_ = place;
  --size_;
}

const Entry* StreamEntries::find(const Tag& tag) const {
  const Place place = table_[place_in_table(tag)];
  return place == 0 ? nullptr : &node(place).entry;
}

bool StreamEntries::replace(const Entry& entry, StreamSlot taker, bool moves) {
  const Place known = table_[place_in_table(entry.tag)];
  if (known == 0) return false;
  node(known).entry = entry;
  const StreamSlot owner = node(known).stream;
  unlink(known);
  link(known, moves ? taker : owner);
  return true;
}

void StreamEntries::add(const Entry& entry, StreamSlot slot) {
  if ((size_ + 1) * 4 > table_.size() * 3) grow_table();
  const Place place = new_node();
  node(place).entry = entry;
  table_[place_in_table(entry.tag)] = place;
  link(place, slot);
  ++size_;
}

void StreamEntries::erase(const Tag& tag) {
  if (const Place place = table_[place_in_table(tag)]; place != 0) remove(place);
}

void StreamEntries::erase_if(const std::function<bool(ChunkId)>& test) {
  for (const List& list : lists_) {
    for (Place place = list.newest; place != 0;) {
      const Place next = node(place).older;
      if (test(node(place).entry.id())) remove(place);
      place = next;
    }
  }
}

void StreamEntries::drop_oldest(StreamSlot slot) { remove(lists_[slot].oldest); }

void StreamEntries::move_all(StreamSlot from, StreamSlot to) {
  for (Place place = lists_[from].oldest; place != 0; place = lists_[from].oldest) {
    unlink(place);
    link(place, to);
  }
}

std::size_t StreamEntries::memory_bytes() const {
  return blocks_.size() * (sizeof(Block) + sizeof(void*)) + table_.size() * sizeof(Place) +
         lists_.size() * sizeof(List);
}

}  // namespace varve::index

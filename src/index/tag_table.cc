// SPDX-License-Identifier: Apache-2.0
#include "index/tag_table.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace varve::index {

namespace {
void sort_entries(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.tag, a.birth, a.ordinal) < std::tie(b.tag, b.birth, b.ordinal);
  });
}
}  // namespace

void TagTable::place(const Entry& entry) {
  std::size_t i = home(entry.tag);
  while (!slots_[i].is_empty()) i = next(i);
  slots_[i] = entry;
}

void TagTable::put(const Entry& entry) {
  if (is_full()) {
    std::vector<Entry> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Entry& one : old) {
      if (!one.is_empty()) place(one);
    }
  }
  place(entry);
  ++used_;
}

void TagTable::change(const Tag& tag, ChunkId from, ChunkId to) {
  for (std::size_t i = home(tag); !slots_[i].is_empty(); i = next(i)) {
    if (slots_[i].tag != tag || slots_[i].id() != from) continue;
    slots_[i] = Entry(tag, to);
    return;
  }
}

std::vector<Entry> TagTable::sorted() const {
  std::vector<Entry> entries;
  entries.reserve(used_);
  std::ranges::copy_if(slots_, std::back_inserter(entries),
                       [](const Entry& entry) { return !entry.is_empty(); });
  sort_entries(entries);
  return entries;
}

std::vector<Entry> TagTable::take_sorted() {
  std::erase_if(slots_, [](const Entry& entry) { return entry.is_empty(); });
  sort_entries(slots_);
  auto entries = std::move(slots_);
  slots_ = std::vector<Entry>(kSlotsMin);
  used_ = 0;
  return entries;
}

void TagTable::clear() {
  std::fill(slots_.begin(), slots_.end(), Entry());
  used_ = 0;
}

}  // namespace varve::index

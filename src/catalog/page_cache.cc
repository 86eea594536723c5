// SPDX-License-Identifier: Apache-2.0
#include "catalog/page_cache.h"

#include <utility>

namespace varve::catalog {

std::optional<PageCache::Page> PageCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto place = place_of_.find(key);
  if (place == place_of_.end()) return std::nullopt;
  pages_.splice(pages_.begin(), pages_, place->second);
  return place->second->page;
}

void PageCache::add(const Key& key, const Page& page, std::size_t bytes) {
  std::list<Entry> dropped;  // Freed after the lock is released.
  const std::lock_guard lock(mutex_);
  if (place_of_.contains(key)) return;
  pages_.push_front({key, page, bytes});
  place_of_[key] = pages_.begin();
  bytes_ += bytes;
  while (pages_.size() > kPagesMax || (bytes_ > kBytesMax && pages_.size() > 1)) {
    bytes_ -= pages_.back().bytes;
    place_of_.erase(pages_.back().key);
    dropped.splice(dropped.begin(), pages_, std::prev(pages_.end()));
  }
}

std::optional<PageCache::PlacedLeaf> PageCache::leaf_with(const Key& root, Rank rank) {
  const std::lock_guard lock(mutex_);
  if (!leaf_ || leaf_->root != root || rank < leaf_->first || rank >= leaf_->end) {
    return std::nullopt;
  }
  return leaf_;
}

void PageCache::keep_leaf(PlacedLeaf leaf) {
  std::optional<PlacedLeaf> replaced = std::move(leaf);  // Freed after the lock is released.
  const std::lock_guard lock(mutex_);
  leaf_.swap(replaced);
}

}  // namespace varve::catalog

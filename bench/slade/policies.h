// SPDX-License-Identifier: Apache-2.0
// The caches of fingerprints that TLE-LRU is compared with: LRU, LFU and ARC, each with a fixed
// number of entries. For the bench only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>

namespace varve::bench {

/// A cache from contents to ids that all streams share.
class ContentCache {
 public:
  virtual ~ContentCache() = default;
  /// Returns the id and counts the arrival.
  virtual std::optional<std::uint64_t> arrive(std::size_t stream, std::uint64_t content) = 0;
  /// Gives the content of an arrival, found or not, an id.
  virtual void use(std::size_t stream, std::uint64_t content, std::uint64_t id) = 0;
  virtual void join(std::size_t /*stream*/) {}
  /// Run length below which duplicates are stored again.
  [[nodiscard]] virtual std::uint64_t threshold(std::size_t /*stream*/) const { return 1; }
  virtual void note_run(std::size_t /*stream*/, std::uint64_t /*length*/) {}
};

class LruCache : public ContentCache {
 public:
  explicit LruCache(std::size_t entries, std::uint64_t threshold = 1)
      : entries_(entries), threshold_(threshold) {}
  std::optional<std::uint64_t> arrive(std::size_t /*stream*/, std::uint64_t content) override {
    const auto known = places_.find(content);
    if (known == places_.end()) return std::nullopt;
    return known->second->second;
  }
  void use(std::size_t /*stream*/, std::uint64_t content, std::uint64_t id) override {
    if (const auto known = places_.find(content); known != places_.end()) {
      known->second->second = id;
      order_.splice(order_.begin(), order_, known->second);
      return;
    }
    if (order_.size() == entries_) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(content, id);
    places_[content] = order_.begin();
  }
  [[nodiscard]] std::uint64_t threshold(std::size_t /*stream*/) const override {
    return threshold_;
  }

 private:
  using Order = std::list<std::pair<std::uint64_t, std::uint64_t>>;
  const std::size_t entries_;
  const std::uint64_t threshold_;
  Order order_;
  std::unordered_map<std::uint64_t, Order::iterator> places_;
};

/// Least frequently used; among equals, least recently.
class LfuCache final : public ContentCache {
 public:
  explicit LfuCache(std::size_t entries) : entries_(entries) {}
  std::optional<std::uint64_t> arrive(std::size_t /*stream*/, std::uint64_t content) override {
    const auto known = places_.find(content);
    if (known == places_.end()) return std::nullopt;
    return known->second.id;
  }
  void use(std::size_t /*stream*/, std::uint64_t content, std::uint64_t id) override {
    std::uint64_t times = 1;
    if (const auto known = places_.find(content); known != places_.end()) {
      times = known->second.times + 1;
      drop(known->second);
    } else if (places_.size() == entries_) {
      const auto gone = by_times_.begin()->second.back();
      drop(places_[gone]);
      places_.erase(gone);
    }
    auto& list = by_times_[times];
    list.push_front(content);
    places_[content] = {id, times, list.begin()};
  }

 private:
  struct Place {
    std::uint64_t id = 0;
    std::uint64_t times = 0;
    std::list<std::uint64_t>::iterator at;
  };
  void drop(const Place& place) {
    auto& list = by_times_[place.times];
    list.erase(place.at);
    if (list.empty()) by_times_.erase(place.times);
  }
  const std::size_t entries_;
  std::map<std::uint64_t, std::list<std::uint64_t>> by_times_;
  std::unordered_map<std::uint64_t, Place> places_;
};

/// Adaptive Replacement Cache (Megiddo and Modha, FAST'03). Its ghosts are fingerprints, too, so a
/// cache with the memory of C entries has C / 2 of them and C / 2 ghosts.
class ArcCache final : public ContentCache {
 public:
  explicit ArcCache(std::size_t memory_entries) : size_(memory_entries / 2) {}
  std::optional<std::uint64_t> arrive(std::size_t /*stream*/, std::uint64_t content) override {
    const auto known = places_.find(content);
    if (known == places_.end() || known->second.list >= kOnceGhosts) return std::nullopt;
    return known->second.id;
  }
  void use(std::size_t /*stream*/, std::uint64_t content, std::uint64_t id) override {
    const auto known = places_.find(content);
    if (known == places_.end()) {
      add(content, id);
      return;
    }
    const auto list = known->second.list;
    if (list == kOnceGhosts || list == kOftenGhosts) {
      const auto mine = lists_[list].size();
      const auto other = lists_[list == kOnceGhosts ? kOftenGhosts : kOnceGhosts].size();
      const std::size_t step = std::max<std::size_t>(other / mine, 1);
      wanted_once_ = list == kOnceGhosts ? std::min(size_, wanted_once_ + step)
                                         : wanted_once_ - std::min(wanted_once_, step);
      replace(list == kOftenGhosts);
    }
    move(content, kOften);
    places_[content].id = id;
  }

 private:
  enum List : std::size_t { kOnce, kOften, kOnceGhosts, kOftenGhosts };
  struct Place {
    std::uint64_t id = 0;
    List list = kOnce;
    std::list<std::uint64_t>::iterator at;
  };
  void add(std::uint64_t content, std::uint64_t id) {
    const auto once = lists_[kOnce].size() + lists_[kOnceGhosts].size();
    const auto all = once + lists_[kOften].size() + lists_[kOftenGhosts].size();
    if (once == size_) {
      if (lists_[kOnce].size() < size_) {
        drop_last(kOnceGhosts);
        replace(false);
      } else {
        drop_last(kOnce);
      }
    } else if (all >= size_) {
      if (all == 2 * size_) drop_last(kOftenGhosts);
      replace(false);
    }
    lists_[kOnce].push_front(content);
    places_[content] = {id, kOnce, lists_[kOnce].begin()};
  }
  void replace(bool is_often_ghost) {
    const auto once = lists_[kOnce].size();
    if (once + lists_[kOften].size() < size_) return;
    const bool from_once =
        once != 0 && (once > wanted_once_ || (is_often_ghost && once == wanted_once_));
    const List from = from_once || lists_[kOften].empty() ? kOnce : kOften;
    move(lists_[from].back(), from == kOnce ? kOnceGhosts : kOftenGhosts);
  }
  void move(std::uint64_t content, List to) {
    Place& place = places_[content];
    lists_[to].splice(lists_[to].begin(), lists_[place.list], place.at);
    place.list = to;
  }
  void drop_last(List list) {
    if (lists_[list].empty()) return;
    places_.erase(lists_[list].back());
    lists_[list].pop_back();
  }
  const std::size_t size_;
  std::size_t wanted_once_ = 0;
  std::list<std::uint64_t> lists_[4];
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace varve::bench

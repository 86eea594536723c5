// SPDX-License-Identifier: Apache-2.0
// The parts that only a mounted file system needs. Other programs seldom include this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>

#include "varve/backup.h"

namespace varve {

/// Maps inode numbers to ranks, for each inode that had a name at the seal. Inodes whose ranks
/// ascend with their numbers take one range together; others take 4 to 5 bytes each if the numbers
/// are close together. The size never depends on the highest number. Not thread-safe.
class RankTable {
 public:
  /// Adds a rank. Returns false and changes nothing if the inode already has one.
  bool add(Ino ino, std::uint32_t rank) {
    if (find_range(ino) != ranges_.end()) return false;
    auto& slot = pages_.try_emplace(ino / kPageInos, kEmptyPage).first->second[ino % kPageInos];
    if (slot != kNone) return false;
    slot = rank;
    return true;
  }
  /// Adds the ranks from `rank` on of `count` inodes from `first` on. None of them may have a rank.
  void add_range(Ino first, std::uint64_t count, std::uint32_t rank) {
    const auto after = ranges_.lower_bound(first);
    if (after != ranges_.begin()) {
      auto& [before, range] = *std::prev(after);
      if (before + range.count == first && range.rank + range.count == rank) {
        range.count += count;
        return;
      }
    }
    ranges_.insert({first, {count, rank}});
  }
  /// Returns the rank of an inode, or nullopt if it has none.
  [[nodiscard]] std::optional<std::uint32_t> find(Ino ino) const {
    if (const auto range = find_range(ino); range != ranges_.end()) {
      return static_cast<std::uint32_t>(range->second.rank + (ino - range->first));
    }
    const auto page = pages_.find(ino / kPageInos);
    if (page == pages_.end() || page->second[ino % kPageInos] == kNone) return std::nullopt;
    return page->second[ino % kPageInos];
  }
  /// Calls `visit(ino, rank)` for each inode, in no particular order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [first, range] : ranges_) {
      for (std::uint64_t i = 0; i < range.count; ++i) {
        visit(first + i, static_cast<std::uint32_t>(range.rank + i));
      }
    }
    for (const auto& [number, page] : pages_) {
      for (std::size_t i = 0; i < kPageInos; ++i) {
        if (page[i] != kNone) visit(number * kPageInos + i, page[i]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;  // Above the largest possible rank.
  static constexpr std::size_t kPageInos = 64;
  using Page = std::array<std::uint32_t, kPageInos>;
  static constexpr Page kEmptyPage = [] {
    Page page{};
    page.fill(kNone);
    return page;
  }();
  struct Range {
    std::uint64_t count = 0;
    std::uint64_t rank = 0;
  };
  [[nodiscard]] std::map<Ino, Range>::const_iterator find_range(Ino ino) const {
    const auto after = ranges_.upper_bound(ino);
    if (after == ranges_.begin()) return ranges_.end();
    const auto range = std::prev(after);
    return ino - range->first < range->second.count ? range : ranges_.end();
  }
  std::unordered_map<std::uint64_t, Page> pages_;
  std::map<Ino, Range> ranges_;  // By the first inode. The ranges are disjoint.
};

/// Keeps removed files for a caller whose users hold files without opening them, as the kernel does
/// for a program's current directory. Every VersionWriter of a Repository implements this
/// interface. Thread-safe.
class RemovedFiles {
 public:
  virtual ~RemovedFiles() = default;
  /// Keeps each file or directory that loses its last name from now on, until forget(). For such an
  /// inode, get() returns nlink 0, and a directory has no entries.
  virtual void keep_removed() = 0;
  /// Stops keeping one inode. Does not wait. Has no effect on an inode that has a name.
  virtual void forget(Ino ino) = 0;
};

}  // namespace varve

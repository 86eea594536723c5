// SPDX-License-Identifier: Apache-2.0
// Types needed only by a mounted file system. Most programs do not include the header.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "varve/backup.h"

namespace varve {

/// Maps inode numbers to ranks, for each inode with a name at the seal. After compact(), a range of
/// inodes whose ranks ascend with the inode numbers takes 24 bytes; inodes outside such ranges take
/// 4 to 5 bytes each if the numbers are close together. The size never depends on the highest
/// number. Not thread-safe.
class RankTable {
 public:
  /// Adds a rank. Returns false and changes nothing if the inode already has a rank.
  bool add(Ino ino, std::uint32_t rank) {
    if (find_range(ino) != ranges_.end() || find_run(ino) != nullptr) return false;
    auto& slot = pages_.try_emplace(ino / kPageInos, kEmptyPage).first->second[ino % kPageInos];
    if (slot != kNone) return false;
    slot = rank;
    return true;
  }
  /// Adds the ranks from `rank` on of `count` inodes from `first` on. None of the inodes may have a
  /// rank.
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
  /// Converts the table to its smallest form. Call compact() once, after all ranks are added.
  void compact() {
    std::vector<Run> found;
    found.reserve(ranges_.size());
    for (const auto& [first, range] : ranges_) found.push_back({first, range.count, range.rank});
    ranges_.clear();
    for (auto at = pages_.begin(); at != pages_.end();) {
      const std::size_t before = found.size();
      for (std::size_t i = 0; i < kPageInos; ++i) {
        if (at->second[i] != kNone)
          append(found, {at->first * kPageInos + i, 1, at->second[i]}, before);
      }
      const bool is_dense = found.size() - before > kRunsPerPageMax;
      if (is_dense) found.resize(before);
      at = is_dense ? std::next(at) : pages_.erase(at);
    }
    pages_.rehash(0);
    std::ranges::sort(found, {}, &Run::first);
    runs_.clear();
    for (const Run& run : found) append(runs_, run, 0);
    runs_.shrink_to_fit();
  }
  /// Returns the rank of an inode, or nullopt if the inode has none.
  [[nodiscard]] std::optional<std::uint32_t> find(Ino ino) const {
    if (const auto range = find_range(ino); range != ranges_.end()) {
      return static_cast<std::uint32_t>(range->second.rank + (ino - range->first));
    }
    if (const Run* run = find_run(ino))
      return static_cast<std::uint32_t>(run->rank + (ino - run->first));
    const auto page = pages_.find(ino / kPageInos);
    if (page == pages_.end() || page->second[ino % kPageInos] == kNone) return std::nullopt;
    return page->second[ino % kPageInos];
  }
  /// Calls `visit(ino, rank)` for each inode, in no particular order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    const auto visit_all = [&](Ino first, std::uint64_t count, std::uint64_t rank) {
      for (std::uint64_t i = 0; i < count; ++i) {
        visit(first + i, static_cast<std::uint32_t>(rank + i));
      }
    };
    for (const auto& [first, range] : ranges_) visit_all(first, range.count, range.rank);
    for (const Run& run : runs_) visit_all(run.first, run.count, run.rank);
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
  /// A range in the table's smallest form.
  struct Run {
    Ino first = 0;
    std::uint64_t count = 0;
    std::uint64_t rank = 0;
  };
  /// A page with more runs takes less memory than the runs.
  static constexpr std::size_t kRunsPerPageMax = sizeof(Page) / sizeof(Run);
  /// Appends a run, or extends the last one after the first `fixed` runs.
  static void append(std::vector<Run>& runs, const Run& run, std::size_t fixed) {
    if (runs.size() > fixed) {
      Run& last = runs.back();
      if (last.first + last.count == run.first && last.rank + last.count == run.rank) {
        last.count += run.count;
        return;
      }
    }
    runs.push_back(run);
  }
  /// Returns the run with the inode, or null.
  [[nodiscard]] const Run* find_run(Ino ino) const {
    const auto after = std::ranges::upper_bound(runs_, ino, {}, &Run::first);
    if (after == runs_.begin()) return nullptr;
    const Run& run = *std::prev(after);
    return ino - run.first < run.count ? &run : nullptr;
  }
  [[nodiscard]] std::map<Ino, Range>::const_iterator find_range(Ino ino) const {
    const auto after = ranges_.upper_bound(ino);
    if (after == ranges_.begin()) return ranges_.end();
    const auto range = std::prev(after);
    return ino - range->first < range->second.count ? range : ranges_.end();
  }
  std::unordered_map<std::uint64_t, Page> pages_;
  std::map<Ino, Range> ranges_;  // By the first inode. The ranges are disjoint.
  std::vector<Run> runs_;        // Ascending and disjoint. Empty before compact().
};

/// Keeps removed files for a caller whose users refer to files without an open handle, as the
/// kernel does for a program's current directory. VersionWriter::removed_files() returns the
/// interface. Thread-safe.
class RemovedFiles {
 public:
  virtual ~RemovedFiles() = default;
  /// Keeps each file or directory losing its last name from now on, until forget(). For such an
  /// inode, get() returns nlink 0, and a directory has no entries.
  virtual void keep_removed() = 0;
  /// Stops keeping one inode. Does not wait. Has no effect on an inode with a name.
  virtual void forget(Ino ino) = 0;
};

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
// The parts that only a mounted file system needs. Other programs seldom include this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "varve/backup.h"

namespace varve {

/// Maps inode numbers to ranks, for each inode that had a name at the seal. Takes 4 to 5 bytes per
/// inode if the numbers are close together. The size never depends on the highest number. Not
/// thread-safe.
class RankTable {
 public:
  /// Adds a rank. Returns false and changes nothing if the inode already has one.
  bool add(Ino ino, std::uint32_t rank) {
    auto& slot = pages_.try_emplace(ino / kPageInos, kEmptyPage).first->second[ino % kPageInos];
    if (slot != kNone) return false;
    slot = rank;
    return true;
  }
  /// Returns the rank of an inode, or nullopt if it has none.
  [[nodiscard]] std::optional<std::uint32_t> find(Ino ino) const {
    const auto page = pages_.find(ino / kPageInos);
    if (page == pages_.end() || page->second[ino % kPageInos] == kNone) return std::nullopt;
    return page->second[ino % kPageInos];
  }
  /// Calls `visit(ino, rank)` for each inode, in no particular order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
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
  std::unordered_map<std::uint64_t, Page> pages_;
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

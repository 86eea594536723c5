// SPDX-License-Identifier: Apache-2.0
// What became of an open version's inodes when it was sealed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "varve/version_writer.h"

namespace varve {

/// The rank of each inode that had a name. Takes 4 to 5 bytes an inode where numbers lie close
/// together; what it takes never follows from how high they are. Not synchronised.
class RankTable {
 public:
  /// False, and no change, if the inode has a rank.
  bool add(Ino ino, std::uint32_t rank) {
    auto& slot = pages_.try_emplace(ino / kPageInos, kEmptyPage).first->second[ino % kPageInos];
    if (slot != kNone) return false;
    slot = rank;
    return true;
  }
  [[nodiscard]] std::optional<std::uint32_t> find(Ino ino) const {
    const auto page = pages_.find(ino / kPageInos);
    if (page == pages_.end() || page->second[ino % kPageInos] == kNone) return std::nullopt;
    return page->second[ino % kPageInos];
  }
  /// Calls `visit(ino, rank)` in no order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [number, page] : pages_) {
      for (std::size_t i = 0; i < kPageInos; ++i) {
        if (page[i] != kNone) visit(number * kPageInos + i, page[i]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;  // No version has as many entries.
  static constexpr std::size_t kPageInos = 64;
  using Page = std::array<std::uint32_t, kPageInos>;
  static constexpr Page kEmptyPage = [] {
    Page page{};
    page.fill(kNone);
    return page;
  }();
  std::unordered_map<std::uint64_t, Page> pages_;
};

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
// The size of a tree, and which trees are parts of an earlier one.
#pragma once

#include <cstdint>

namespace varve::base {

struct TreeSize {
  std::uint64_t names = 0;  ///< Entries, without the root.
  std::uint64_t bytes = 0;  ///< Logical bytes of all files.
};

[[nodiscard]] constexpr bool lost_more_than_half(std::uint64_t before, std::uint64_t now) {
  return now < before - before / 2;
}

/// Returns whether a tree lost more than half of the names and more than half of the bytes of an
/// earlier tree: the mark of a source without a mount, or of a backup of a part. Without bytes in
/// the earlier tree, the names decide. Other names and other bytes make no part: a new release, or
/// a database with all pages rewritten, is as whole as the version before.
[[nodiscard]] constexpr bool is_partial(const TreeSize& tree, const TreeSize& earlier) {
  const bool lost_bytes = earlier.bytes == 0 || lost_more_than_half(earlier.bytes, tree.bytes);
  return lost_bytes && lost_more_than_half(earlier.names, tree.names);
}

}  // namespace varve::base

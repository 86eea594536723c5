// SPDX-License-Identifier: Apache-2.0
// The files of a group as one sequence of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/parity.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::parity {

/// Reads the members of a group as one sequence of blocks. Keeps a few files open. Not thread-safe.
class MemberReader {
 public:
  /// Lifetime: `store` and `members` must outlive the reader.
  MemberReader(store::SegmentStore& store, const std::vector<format::ParityMember>& members);

  /// Reads blocks into `out`, from block `first` on. Pads the last block of a member with zeros.
  /// `out` must have room for whole blocks and be aligned for direct access. Appends the index in
  /// `out` of each unreadable block to `bad`; the bytes of such a block are undefined. Returns the
  /// first error, if any.
  [[nodiscard]] std::optional<Error> read(std::uint32_t first, std::span<std::byte> out,
                                          std::vector<std::uint32_t>& bad);

  /// Returns the first block of a member.
  [[nodiscard]] std::uint32_t begin_of(std::size_t member) const { return begins_[member]; }
  /// Returns the member to which a block belongs.
  [[nodiscard]] std::size_t member_of(std::uint32_t block) const;

 private:
  [[nodiscard]] Result<std::shared_ptr<store::OpenSegment>> open(std::size_t member);
  [[nodiscard]] Result<void> read_part(std::size_t member, std::uint64_t offset,
                                       std::span<std::byte> out);

  static constexpr std::size_t kOpenFilesMax = 64;
  store::SegmentStore& store_;
  const std::vector<format::ParityMember>& members_;
  std::vector<std::uint32_t> begins_;
  std::unordered_map<std::size_t, std::shared_ptr<store::OpenSegment>> open_;
};

}  // namespace varve::parity

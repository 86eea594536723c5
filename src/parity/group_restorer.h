// SPDX-License-Identifier: Apache-2.0
// Restores damaged blocks of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/parity.h"
#include "parity/group_files.h"
#include "parity/member_reader.h"
#include "parity/reed_solomon.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::parity {

/// Restores damaged blocks of one group in memory. Used once, by one thread. Changes no file.
class GroupRestorer {
 public:
  /// Opens the parity file of a group. Errors: kCorrupt for an unusable file.
  [[nodiscard]] static Result<std::unique_ptr<GroupRestorer>> open(store::SegmentStore& store,
                                                                   Group group);

  /// Reads all members, and finds missing blocks and blocks with wrong checksums. Calls `pass` with
  /// the number of bytes read.
  void scan(const std::function<void(std::uint64_t)>& pass);

  [[nodiscard]] const format::ParityIndex& index() const { return group_.index; }
  /// Returns whether a block is damaged. Valid after scan().
  [[nodiscard]] bool is_bad(std::uint32_t block) const { return bad_[block]; }
  /// Returns the group's block numbers [first, last) for the bytes [offset, end) of a member.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> blocks_of(std::size_t member,
                                                                  std::uint64_t offset,
                                                                  std::uint64_t end) const;

  /// Returns the restored bytes of the damaged blocks `wanted`. Leaves out unrestorable blocks.
  /// Each result matches its checksum. Memory: the wanted blocks and one codeword.
  [[nodiscard]] std::map<std::uint32_t, std::vector<std::byte>> restore(
      const std::set<std::uint32_t>& wanted);

 private:
  GroupRestorer(store::SegmentStore& store, Group group, format::ParitySums sums,
                std::shared_ptr<store::OpenSegment> file);
  /// Returns false if too many blocks of the codeword are lost.
  [[nodiscard]] bool restore_codeword(std::uint32_t codeword, std::vector<std::uint32_t>& lost);
  [[nodiscard]] std::span<std::byte> slot(std::size_t i) {
    return buffer_.span().subspan(i * format::kParityBlockBytes, format::kParityBlockBytes);
  }

  const Group group_;
  const format::ParityShape shape_;
  const format::ParitySums sums_;
  const std::shared_ptr<store::OpenSegment> file_;  ///< The group's parity file.
  MemberReader reader_;
  const ReedSolomon code_;
  base::AlignedBuffer buffer_;  ///< One codeword: the data blocks, then the parity blocks.
  std::vector<bool> bad_;
};

}  // namespace varve::parity

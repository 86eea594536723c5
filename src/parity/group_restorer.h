// SPDX-License-Identifier: Apache-2.0
// Brings damaged blocks of a group back.
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
#include "io/file_system.h"
#include "parity/group_files.h"
#include "parity/member_reader.h"
#include "parity/reed_solomon.h"
#include "varve/result.h"

namespace varve::parity {

/// One use, one thread. Changes no file.
class GroupRestorer {
 public:
  /// kCorrupt if the parity file cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<GroupRestorer>> open(
      io::FileSystem& files, const std::string& series_directory, Group group);

  /// Reads all members and finds the blocks that are not what they were, or are not there. `pass`
  /// gets bytes read.
  void scan(const std::function<void(std::uint64_t)>& pass);

  [[nodiscard]] const format::ParityIndex& index() const { return group_.index; }
  /// Valid after scan().
  [[nodiscard]] bool is_bad(std::uint32_t block) const { return bad_[block]; }
  /// The blocks of a member's bytes from `offset` to before `end`, as numbers of the group.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> blocks_of(std::size_t member,
                                                                  std::uint64_t offset,
                                                                  std::uint64_t end) const;

  /// The bytes of those of `wanted`, bad ones, that can be restored; each has its checksum. Takes
  /// memory for them and for one codeword.
  [[nodiscard]] std::map<std::uint32_t, std::vector<std::byte>> restore(
      const std::set<std::uint32_t>& wanted);

 private:
  GroupRestorer(io::FileSystem& files, const std::string& series_directory, Group group,
                format::ParitySums sums, std::unique_ptr<io::File> file);
  /// False if too much of the codeword is lost.
  [[nodiscard]] bool restore_codeword(std::uint32_t codeword, std::vector<std::uint32_t>& lost);
  [[nodiscard]] std::span<std::byte> slot(std::size_t i) {
    return buffer_.span().subspan(i * format::kParityBlockBytes, format::kParityBlockBytes);
  }

  const Group group_;
  const format::ParityShape shape_;
  const format::ParitySums sums_;
  const std::unique_ptr<io::File> file_;  ///< The parity file.
  MemberReader reader_;
  const ReedSolomon code_;
  base::AlignedBuffer buffer_;  ///< A codeword: its data, then its parity.
  std::vector<bool> bad_;
};

}  // namespace varve::parity

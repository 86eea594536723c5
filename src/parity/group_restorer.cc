// SPDX-License-Identifier: Apache-2.0
#include "parity/group_restorer.h"

#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "format/container.h"

namespace varve::parity {

using format::kParityBlockBytes;

namespace {
constexpr std::uint32_t kScanBlocks = 64;  // Blocks per read.
}  // namespace

Result<std::unique_ptr<GroupRestorer>> GroupRestorer::open(store::SegmentStore& store,
                                                           Group group) {
  VARVE_TRY_ASSIGN(auto sums, load_sums(store, group));
  if (sums.data.size() != group.index.blocks ||
      sums.parity.size() != group.index.shape().parity_total()) {
    return Error(ErrorCode::kCorrupt, "parity file: it changed while it was read");
  }
  VARVE_TRY_ASSIGN(auto file, store.open(group.number, store::ReadMode::kCached));
  return std::unique_ptr<GroupRestorer>(
      new GroupRestorer(store, std::move(group), std::move(sums), std::move(file)));
}

GroupRestorer::GroupRestorer(store::SegmentStore& store, Group group, format::ParitySums sums,
                             std::shared_ptr<store::OpenSegment> file)
    : group_(std::move(group)),
      shape_(group_.index.shape()),
      sums_(std::move(sums)),
      file_(std::move(file)),
      reader_(store, group_.index.members),
      code_(shape_.data_blocks, shape_.parity_blocks),
      buffer_((std::size_t{shape_.data_blocks} + shape_.parity_blocks) * kParityBlockBytes) {}

void GroupRestorer::scan(const std::function<void(std::uint64_t)>& pass) {
  bad_.assign(shape_.blocks, false);
  base::AlignedBuffer part(kScanBlocks * kParityBlockBytes);
  for (std::uint32_t first = 0; first < shape_.blocks; first += kScanBlocks) {
    const auto count = std::min(kScanBlocks, shape_.blocks - first);
    const auto bytes = part.span().first(count * kParityBlockBytes);
    std::vector<std::uint32_t> unread;
    static_cast<void>(reader_.read(first, bytes, unread));
    for (const auto i : unread) bad_[first + i] = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto block = bytes.subspan(i * kParityBlockBytes, kParityBlockBytes);
      if (base::checksum64(block) != sums_.data[first + i]) bad_[first + i] = true;
    }
    pass(bytes.size());
  }
}

std::pair<std::uint32_t, std::uint32_t> GroupRestorer::blocks_of(std::size_t member,
                                                                 std::uint64_t offset,
                                                                 std::uint64_t end) const {
  const auto begin = reader_.begin_of(member);
  const auto bytes = std::min(end, group_.index.members[member].bytes);
  if (offset >= bytes) return {begin, begin};
  return {begin + static_cast<std::uint32_t>(offset / kParityBlockBytes),
          begin + static_cast<std::uint32_t>((bytes - 1) / kParityBlockBytes) + 1};
}

std::map<std::uint32_t, std::vector<std::byte>> GroupRestorer::restore(
    const std::set<std::uint32_t>& wanted) {
  std::map<std::uint32_t, std::set<std::uint32_t>> by_codeword;
  for (const auto block : wanted) by_codeword[block % shape_.codewords].insert(block);
  std::map<std::uint32_t, std::vector<std::byte>> restored;
  for (const auto& [codeword, blocks] : by_codeword) {
    std::vector<std::uint32_t> lost;
    if (!restore_codeword(codeword, lost)) continue;
    for (const auto block : blocks) {
      const auto bytes = slot(block / shape_.codewords);
      // Blocks that were not lost always match. A wrong restored block is worse than none.
      if (base::checksum64(bytes) != sums_.data[block]) continue;
      restored[block].assign(bytes.begin(), bytes.end());
    }
  }
  return restored;
}

bool GroupRestorer::restore_codeword(std::uint32_t codeword, std::vector<std::uint32_t>& lost) {
  std::vector<std::byte*> data;
  for (std::uint32_t i = 0; i < shape_.data_blocks; ++i) {
    const auto bytes = slot(i);
    data.push_back(bytes.data());
    const auto block = i * shape_.codewords + codeword;
    if (block >= shape_.blocks) {
      std::fill(bytes.begin(), bytes.end(), std::byte{});
      continue;
    }
    std::vector<std::uint32_t> unread;
    if (!bad_[block]) static_cast<void>(reader_.read(block, bytes, unread));
    if (bad_[block] || !unread.empty() || base::checksum64(bytes) != sums_.data[block]) {
      bad_[block] = true;
      lost.push_back(i);
    }
  }
  const std::uint64_t parity_at =
      group_.bytes / 2 - std::uint64_t{shape_.parity_total()} * kParityBlockBytes / 2;
  std::vector<const std::byte*> parity(shape_.parity_blocks, nullptr);
  std::size_t sound = 0;
  for (std::uint32_t j = 0; j < shape_.parity_blocks && sound < lost.size(); ++j) {
    const auto number = codeword * shape_.parity_blocks + j;
    const auto bytes = slot(shape_.data_blocks + j);
    const auto got = file_->read_at(parity_at + std::uint64_t{number} * kParityBlockBytes, bytes);
    if (!got || *got != bytes.size() || base::checksum64(bytes) != sums_.parity[number]) continue;
    parity[j] = bytes.data();
    ++sound;
  }
  return code_.restore(data, lost, parity, kParityBlockBytes);
}

}  // namespace varve::parity

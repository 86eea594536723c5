// SPDX-License-Identifier: Apache-2.0
#include "parity/group_writer.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"
#include "parity/group_files.h"
#include "parity/member_reader.h"
#include "parity/reed_solomon.h"

namespace varve::parity {

namespace {

using format::kParityBlockBytes;

// Size of a read. A read covers several rows of blocks, which are then added codeword by codeword.
// So the parity of one codeword stays in the processor's cache.
constexpr std::size_t kBatchBytes = 8U << 20;

/// Computes the parity of a group in memory. For one use.
class GroupEncoder {
 public:
  GroupEncoder(store::SegmentStore& store, const format::ParityIndex& index)
      : shape_(index.shape()),
        reader_(store, index.members),
        code_(shape_.data_blocks, shape_.parity_blocks),
        parity_(std::size_t{shape_.parity_total()} * kParityBlockBytes) {}

  /// Reads the members and computes the parity. Returns false if `pass` stopped the work or a
  /// member is unreadable.
  [[nodiscard]] bool run(const std::function<bool(std::uint64_t)>& pass) {
    const std::size_t row_bytes = shape_.codewords * kParityBlockBytes;
    const auto rows = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(kBatchBytes / row_bytes, 1, shape_.data_blocks));
    base::AlignedBuffer buffer(rows * row_bytes);
    std::vector<std::uint32_t> bad;
    for (std::uint32_t row = 0; row < shape_.data_blocks; row += rows) {
      const std::uint32_t first = row * shape_.codewords;
      const auto count = std::min(rows * shape_.codewords, shape_.blocks - first);
      const auto part = buffer.span().first(count * kParityBlockBytes);
      if (reader_.read(first, part, bad)) {
        for (const auto i : bad) unread_.insert(reader_.member_of(first + i));
        if (unread_.empty()) unread_.insert(reader_.member_of(first));
        return false;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        sums_.data.push_back(
            base::checksum64(part.subspan(i * kParityBlockBytes, kParityBlockBytes)));
      }
      add(row, part);
      if (!pass(part.size())) return false;
    }
    for (std::uint32_t i = 0; i < shape_.parity_total(); ++i) {
      sums_.parity.push_back(base::checksum64(std::span(block(i), kParityBlockBytes)));
    }
    return true;
  }

  /// Returns the indices of the unreadable members.
  [[nodiscard]] const std::set<std::size_t>& unread() const { return unread_; }
  [[nodiscard]] const format::ParitySums& sums() const { return sums_; }
  [[nodiscard]] std::span<const std::byte> parity() const { return parity_; }

 private:
  [[nodiscard]] std::byte* block(std::uint32_t i) { return &parity_[i * kParityBlockBytes]; }

  void add(std::uint32_t row, std::span<const std::byte> part) {
    const auto count = static_cast<std::uint32_t>(part.size() / kParityBlockBytes);
    std::vector<std::byte*> out(shape_.parity_blocks);
    for (std::uint32_t c = 0; c < std::min(shape_.codewords, count); ++c) {
      for (std::uint32_t j = 0; j < out.size(); ++j) {
        out[j] = block(c * shape_.parity_blocks + j);
      }
      for (std::uint32_t i = c; i < count; i += shape_.codewords) {
        code_.add(row + i / shape_.codewords, &part[i * kParityBlockBytes], out, kParityBlockBytes);
      }
    }
  }

  const format::ParityShape shape_;
  MemberReader reader_;
  const ReedSolomon code_;
  std::vector<std::byte> parity_;
  format::ParitySums sums_;
  std::set<std::size_t> unread_;
};

// Returns the members with changed bytes. Does not compare a block shortened by a later cut.
std::vector<SegmentNumber> changed_members(const format::ParityIndex& index,
                                           const std::vector<std::uint64_t>& sums,
                                           const KnownSums& known) {
  std::vector<SegmentNumber> changed;
  std::size_t begin = 0;
  for (const auto& member : index.members) {
    const auto before = known.find(member.segment);
    if (before != known.end()) {
      const auto count = std::min<std::size_t>(before->second.size(), member.blocks());
      const auto first = sums.begin() + static_cast<std::ptrdiff_t>(begin);
      if (!std::equal(first, first + static_cast<std::ptrdiff_t>(count), before->second.begin())) {
        changed.push_back(member.segment);
      }
    }
    begin += member.blocks();
  }
  return changed;
}

Result<std::uint64_t> write_file(store::SegmentStore& store, GroupNumber number,
                                 format::ParityIndex& index, const GroupEncoder& encoder) {
  const auto encoded = format::encode_parity_index(index, encoder.sums());
  const auto tables = encoded.members + encoded.sums;
  const std::array<std::span<const std::byte>, 5> parts = {
      base::as_bytes(encoded.header), base::as_bytes(tables), encoder.parity(),
      base::as_bytes(tables), base::as_bytes(encoded.header)};
  VARVE_TRY(store.put(number, parts));
  std::uint64_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

}  // namespace

Result<GroupOutcome> write_group(store::SegmentStore& store, GroupNumber number,
                                 format::ParityIndex index, const KnownSums& known,
                                 const std::function<bool(std::uint64_t)>& pass) {
  GroupOutcome outcome;
  index.blocks = 0;
  for (const auto& member : index.members) index.blocks += member.blocks();
  GroupEncoder encoder(store, index);
  const bool whole = encoder.run([&](std::uint64_t bytes) {
    outcome.bytes_read += bytes;
    return pass(bytes);
  });
  for (const auto i : encoder.unread()) outcome.damaged.push_back(index.members[i].segment);
  if (!whole) return outcome;
  outcome.damaged = changed_members(index, encoder.sums().data, known);
  if (!outcome.damaged.empty()) return outcome;
  VARVE_TRY_ASSIGN(outcome.bytes_written, write_file(store, number, index, encoder));
  outcome.written = true;
  return outcome;
}

}  // namespace varve::parity

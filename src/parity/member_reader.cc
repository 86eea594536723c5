// SPDX-License-Identifier: Apache-2.0
#include "parity/member_reader.h"

#include <algorithm>
#include <utility>

#include "store/segment_files.h"

namespace varve::parity {

using format::kParityBlockBytes;

MemberReader::MemberReader(store::SegmentStore& store,
                           const std::vector<format::ParityMember>& members)
    : store_(store), members_(members) {
  std::uint32_t next = 0;
  for (const auto& member : members_) {
    begins_.push_back(next);
    next += member.blocks();
  }
}

std::size_t MemberReader::member_of(std::uint32_t block) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), block);
  return static_cast<std::size_t>(after - begins_.begin()) - 1;
}

Result<std::shared_ptr<store::OpenSegment>> MemberReader::open(std::size_t member) {
  const auto known = open_.find(member);
  if (known != open_.end()) return known->second;
  if (open_.size() >= kOpenFilesMax) open_.clear();
  // Direct access keeps the members' bytes out of the page cache: the bytes were just written, or
  // are rarely read.
  VARVE_TRY_ASSIGN(auto file, store_.open(members_[member].segment, store::ReadMode::kDirect));
  open_[member] = file;
  return file;
}

// Reads whole blocks, and pads a shorter last block of a member with zeros.
Result<void> MemberReader::read_part(std::size_t member, std::uint64_t offset,
                                     std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(const auto file, open(member));
  const auto wanted = std::min<std::uint64_t>(out.size(), members_[member].bytes - offset);
  const auto aligned = store::whole_blocks(wanted);
  VARVE_TRY_ASSIGN(const auto got, file->read_at(offset, out.first(aligned)));
  if (got < wanted) {
    return Error(ErrorCode::kCorrupt,
                 store::segment_path(members_[member].segment) + " is too short");
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(wanted), out.end(), std::byte{});
  return {};
}

std::optional<Error> MemberReader::read(std::uint32_t first, std::span<std::byte> out,
                                        std::vector<std::uint32_t>& bad) {
  std::optional<Error> error;
  const auto count = static_cast<std::uint32_t>(out.size() / kParityBlockBytes);
  for (std::uint32_t done = 0; done < count;) {
    const auto member = member_of(first + done);
    const auto skip = first + done - begins_[member];
    const auto here = std::min(count - done, members_[member].blocks() - skip);
    const auto part = out.subspan(done * kParityBlockBytes, here * kParityBlockBytes);
    auto read = read_part(member, std::uint64_t{skip} * kParityBlockBytes, part);
    if (!read) {
      if (!error) error = std::move(read).error();
      // Reads block by block, so that an unreadable place does not affect the neighbouring blocks.
      for (std::uint32_t i = 0; i < here; ++i) {
        const auto one = read_part(member, (std::uint64_t{skip} + i) * kParityBlockBytes,
                                   part.subspan(i * kParityBlockBytes, kParityBlockBytes));
        if (!one) bad.push_back(done + i);
      }
    }
    done += here;
  }
  return error;
}

}  // namespace varve::parity

// SPDX-License-Identifier: Apache-2.0
#include "parity/group_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/system_error.h"
#include "format/container.h"

namespace varve::parity {

namespace {

Result<std::vector<std::byte>> read_exactly(store::OpenSegment& file, std::uint64_t offset,
                                            std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  VARVE_TRY_ASSIGN(const auto got, file.read_at(offset, out));
  if (got != bytes) return Error(ErrorCode::kCorrupt, "parity file: it is cut off");
  return out;
}

/// Selects one of the two copies of an index.
enum class Copy : std::uint8_t { kFirst, kLast };

// A header with the offset of the members. The members follow the first copy of the header, and
// precede the last one.
struct FoundHeader {
  format::ParityHeader header;
  std::uint64_t members_at = 0;
};

Result<FoundHeader> read_header(store::OpenSegment& file, Copy copy) {
  VARVE_TRY_ASSIGN(const auto size, file.size());
  if (size < 2 * format::kParityHeaderBytes) {
    return Error(ErrorCode::kCorrupt, "parity file: it is cut off");
  }
  const auto at = copy == Copy::kFirst ? 0 : size - format::kParityHeaderBytes;
  VARVE_TRY_ASSIGN(const auto bytes, read_exactly(file, at, format::kParityHeaderBytes));
  FoundHeader found;
  VARVE_TRY_ASSIGN(found.header, format::decode_parity_header(bytes));
  if (found.header.file_bytes() != size) {
    return Error(ErrorCode::kCorrupt, "parity file: its length is wrong");
  }
  found.members_at =
      copy == Copy::kFirst ? format::kParityHeaderBytes : size - found.header.index_bytes();
  return found;
}

Result<format::ParityIndex> read_index(store::OpenSegment& file, Copy copy) {
  VARVE_TRY_ASSIGN(const auto found, read_header(file, copy));
  VARVE_TRY_ASSIGN(const auto bytes,
                   read_exactly(file, found.members_at, found.header.member_bytes()));
  return format::decode_parity_members(found.header, bytes);
}

Result<format::ParitySums> read_sums(store::OpenSegment& file, Copy copy) {
  VARVE_TRY_ASSIGN(const auto found, read_header(file, copy));
  VARVE_TRY_ASSIGN(
      const auto bytes,
      read_exactly(file, found.members_at + found.header.member_bytes(), found.header.sum_bytes()));
  return format::decode_parity_sums(found.header, bytes);
}

}  // namespace

Result<GroupListing> list_groups(store::SegmentStore& store, StoreId store_id) {
  GroupListing listing;
  VARVE_TRY_ASSIGN(const auto files, store.list(store::StoredKind::kGroups));
  for (const auto& name : files) {
    const auto number = std::get<GroupNumber>(name);
    listing.next_number = std::max(listing.next_number, number_after(number));
    const auto file = store.open(number, store::ReadMode::kCached);
    if (!file && file.error().code() == ErrorCode::kNotFound) continue;  // Removed in the meantime.
    auto index =
        file ? read_index(**file, Copy::kFirst) : Result<format::ParityIndex>(file.error());
    if (!index && file) {
      auto other = read_index(**file, Copy::kLast);
      if (other) index = std::move(other);
    }
    if (index && index->store != store_id) {
      index = Error(ErrorCode::kCorrupt, "this is the parity of another series");
    }
    if (!index) {
      if (index.error().code() == ErrorCode::kUnsupported) continue;
      const bool damaged =
          index.error().code() == ErrorCode::kCorrupt || base::is_device_failure(index.error());
      if (!damaged) return std::move(index).error();
      listing.damaged.emplace_back(number, index.error());
      continue;
    }
    VARVE_TRY_ASSIGN(const auto bytes, (*file)->size());
    listing.groups.push_back({number, std::move(*index), bytes});
  }
  return listing;
}

Result<format::ParitySums> load_sums(store::SegmentStore& store, const Group& group) {
  VARVE_TRY_ASSIGN(const auto file, store.open(group.number, store::ReadMode::kCached));
  auto sums = read_sums(*file, Copy::kFirst);
  if (sums) return sums;
  return read_sums(*file, Copy::kLast);
}

Result<std::string> faults_of_group(store::SegmentStore& store, const Group& group) {
  VARVE_TRY_ASSIGN(const auto file, store.open(group.number, store::ReadMode::kCached));
  for (const auto copy : {Copy::kFirst, Copy::kLast}) {
    const auto index = read_index(*file, copy);
    if (!index) return index.error().message();
    const auto sums = read_sums(*file, copy);
    if (!sums) return sums.error().message();
    if (!(*index == group.index)) return std::string("its two indexes differ");
  }
  VARVE_TRY_ASSIGN(const auto sums, read_sums(*file, Copy::kFirst));
  VARVE_TRY_ASSIGN(const auto header, read_header(*file, Copy::kFirst));
  std::vector<std::byte> block(format::kParityBlockBytes);
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < sums.parity.size(); ++i) {
    const auto got = file->read_at(header.header.index_bytes() + i * block.size(), block);
    const bool whole = got && *got == block.size();
    if (!whole || base::checksum64(block) != sums.parity[i]) ++bad;
  }
  if (bad == 0) return std::string();
  return fmt::format("{} of {} parity blocks are damaged", bad, sums.parity.size());
}

}  // namespace varve::parity

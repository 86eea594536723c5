// SPDX-License-Identifier: Apache-2.0
#include "maintain/header_fixer.h"

#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"

namespace varve::maintain {

namespace {

constexpr std::size_t kHeaderSumAt = 120;  // docs/FORMAT.md §3.
constexpr unsigned kValues = 256;

// Changes a single byte of `part` so that `right` returns true. Returns the byte's index. Returns
// nullopt and leaves `part` unchanged if no single byte makes `right` true.
template <typename Right>
std::optional<std::size_t> try_bytes(std::span<std::byte> part, Right&& right) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::byte was = part[i];
    for (unsigned value = 0; value < kValues; ++value) {
      part[i] = static_cast<std::byte>(value);
      if (part[i] != was && right()) return i;
    }
    part[i] = was;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<HeaderFix>> find_header_fix(store::SegmentStore& store,
                                                 const format::ContainerKeys* keys,
                                                 StoreId store_id,
                                                 const format::ContainerRecord& record) {
  const auto none = std::optional<HeaderFix>();
  const auto file = store.open(record.segment, store::ReadMode::kCached);
  if (!file) return none;
  std::vector<std::byte> whole(record.header_bytes);
  const auto got = (*file)->read_at(record.offset, whole);
  if (!got && got.error().code() == ErrorCode::kCorrupt) return none;  // Lost by the object store.
  if (!got) return got.error();
  if (*got != whole.size() || whole.size() < format::kContainerFixedHeaderBytes) return none;
  const auto bytes = std::span(whole);
  const auto fixed_part = bytes.first(format::kContainerFixedHeaderBytes);
  const auto table = bytes.subspan(format::kContainerFixedHeaderBytes);
  const auto fixed_part_matches = [&] {
    return base::checksum64(fixed_part.first(kHeaderSumAt)) ==
           base::load_le<std::uint64_t>(&whole[kHeaderSumAt]);
  };
  std::optional<std::size_t> fixed;
  if (!fixed_part_matches()) {
    fixed = try_bytes(fixed_part, fixed_part_matches);
  } else if (const auto sum = format::container_tables_checksum(fixed_part, keys);
             sum && base::checksum64(table) != *sum) {
    fixed = try_bytes(table, [&] { return base::checksum64(table) == *sum; });
    if (fixed) *fixed += format::kContainerFixedHeaderBytes;
  }
  if (!fixed) return none;
  const auto decoded = format::decode_container_header(bytes, keys);
  if (!decoded || decoded->store != store_id || !record.may_be(*decoded)) return none;
  return std::optional(HeaderFix{record.offset + *fixed, whole[*fixed]});
}

}  // namespace varve::maintain

// SPDX-License-Identifier: Apache-2.0
#include "repo/check_store_data.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "replica/catalog_reads.h"
#include "replica/head.h"

namespace varve::repo {

namespace {

// Bytes of objects that are read at the same time.
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{32} << 20;

// Adds what is wrong with one object, if reading it alone fails, too.
template <typename Read>
Result<void> read_one(const std::string& name, const Read& read, StoreCheck& check) {
  const auto got = read();
  if (got) return {};
  const auto code = got.error().code();
  if (code == ErrorCode::kUnavailable || code == ErrorCode::kNotPermitted) return got.error();
  check.damages.push_back({name, code == ErrorCode::kNotFound ? "is missing"
                                                              : "has other bytes than were "
                                                                "uploaded: " +
                                                                    got.error().message()});
  return {};
}

Result<void> read_data(bucket::Bucket& bucket, const std::vector<replica::Extent>& group,
                       StoreCheck& check) {
  for (const auto& extent : group) {
    ++check.objects_read;
    check.bytes_read += extent.bytes;
  }
  if (replica::read_extents(bucket, group)) return {};
  for (const auto& extent : group) {
    VARVE_TRY(read_one(
        extent.object, [&] { return replica::read_extents(bucket, {extent}); }, check));
  }
  return {};
}

}  // namespace

Result<void> read_all_objects(bucket::Bucket& bucket, const replica::ReplicaState& state,
                              StoreCheck& check) {
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return {};
  VARVE_TRY_ASSIGN(const auto head, replica::decode_head(*text));
  for (const auto& object : head.catalog) {
    ++check.objects_read;
    check.bytes_read += object.bytes;
    VARVE_TRY(read_one(
        object.name,
        [&] {
          return replica::read_catalog_objects(bucket, {&object, 1});
        },
        check));
  }
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  std::set<std::string> seen;
  std::vector<replica::Extent> group;
  std::uint64_t bytes = 0;
  for (const auto& [path, extents] : map) {
    for (auto extent : extents) {
      if (extent.object.empty() || !seen.insert(extent.object).second) continue;
      extent.bytes = extent.object_bytes;  // Its checksum is that of the whole object.
      if (!group.empty() && bytes + extent.bytes > kBytesAtOnce) {
        VARVE_TRY(read_data(bucket, group, check));
        group.clear();
        bytes = 0;
      }
      bytes += extent.bytes;
      group.push_back(extent);
    }
  }
  return group.empty() ? Result<void>() : read_data(bucket, group, check);
}

}  // namespace varve::repo

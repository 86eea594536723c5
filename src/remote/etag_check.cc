// SPDX-License-Identifier: Apache-2.0
#include "remote/etag_check.h"

#include <fmt/core.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "remote/catalog_reads.h"

namespace varve::remote {

namespace {

// Limit of the bytes read because of other ETags. A migrated store changes all ETags.
constexpr std::uint64_t kReadBytesMax = std::uint64_t{1} << 30;
constexpr const char* kReplaced = "was replaced: its ETag is not the one noted at the upload";

// The extents of the objects with another ETag than noted, with the whole object each.
Result<std::vector<Extent>> changed_extents(const ReplicaState& state,
                                            const ListedObjects& listed) {
  std::vector<Extent> changed;
  if (listed.changed_etags.empty()) return changed;
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  std::set<std::string> seen;
  for (const auto& [path, extents] : map) {
    for (const auto& extent : extents) {
      if (!listed.changed_etags.contains(extent.object)) continue;
      if (!seen.insert(extent.object).second) continue;
      changed.push_back(whole_object(extent));
    }
  }
  return changed;
}

}  // namespace

Result<Etags> compare_etags(bucket::Bucket& bucket, const ReplicaState& state,
                            const ListedObjects& listed, ObjectsToRead read, StoreCheck& check) {
  VARVE_TRY_ASSIGN(const auto changed, changed_extents(state, listed));
  std::set<std::string> damaged;
  for (const auto& damage : check.damages) damaged.insert(damage.object);
  auto etags = listed.new_etags;
  std::vector<std::string> unproved;  // Objects without a checksum: the store copied the bytes.
  std::uint64_t bytes = 0;
  std::size_t left = 0;
  for (const auto& extent : changed) {
    if (damaged.contains(extent.object)) continue;
    if (extent.checksum == 0) {
      unproved.push_back(extent.object);
      continue;
    }
    if (read != ObjectsToRead::kAll) {
      if (bytes != 0 && bytes + extent.bytes > kReadBytesMax) {
        ++left;
        continue;
      }
      bytes += extent.bytes;
      const auto got = read_extents(bucket, {extent});
      if (!got && !is_loss(got.error())) return got.error();
      ++check.objects_read;
      check.bytes_read += extent.bytes;
      if (!got) {
        check.damages.push_back({extent.object, kReplaced});
        continue;
      }
    }
    etags[extent.object] = listed.changed_etags.at(extent.object);
  }
  const bool store_changes_etags = etags.size() > listed.new_etags.size();
  for (const auto& name : unproved) {
    if (store_changes_etags) {
      etags[name] = listed.changed_etags.at(name);
    } else {
      check.damages.push_back({name, kReplaced});
    }
  }
  if (store_changes_etags) {
    check.notes.push_back(fmt::format("{} objects have other ETags than noted, and the right bytes",
                                      etags.size() - listed.new_etags.size()));
  }
  if (left != 0) {
    check.notes.push_back(fmt::format(
        "{} more objects have other ETags than noted; `varve check --read-store` reads them",
        left));
  }
  for (const auto& damage : check.damages) etags.erase(damage.object);
  return etags;
}

}  // namespace varve::remote

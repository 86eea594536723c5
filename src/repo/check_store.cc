// SPDX-License-Identifier: Apache-2.0
// Compares a list of the object store with what a folder knows of it.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "bucket/bucket.h"
#include "format/superblock.h"
#include "replica/copy_check.h"
#include "replica/head.h"
#include "replica/replica_state.h"
#include "repo/bucket_side.h"
#include "repo/superblock_file.h"
#include "varve/replication.h"

namespace varve::repo {

namespace {

constexpr std::size_t kStoredBytesMax = 64U << 10;
// Younger objects may belong to a head that this folder does not know yet.
constexpr std::int64_t kForeignSeconds = std::int64_t{24} * 60 * 60;

// The objects of the newest head that a folder knows.
struct Expected {
  std::string place;
  std::string repository_id;
  std::string head;                              // Its name; empty before the first one.
  std::map<std::string, std::uint64_t> objects;  // Lengths by name.
  std::set<std::string> others;                  // Objects that may exist, and need not.
};

Result<Expected> read_expected(io::FileSystem& files, const std::string& folder) {
  Expected expected;
  VARVE_TRY_ASSIGN(const auto text, read_superblock_text(files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  expected.repository_id = superblock.repository_id;
  VARVE_TRY_ASSIGN(const bool any, replica::has_state(files, folder));
  if (!any) return expected;
  VARVE_TRY_ASSIGN(const auto state, replica::ReplicaState::open(files, folder, true));
  VARVE_TRY_ASSIGN(const auto uploaded, state.uploaded());
  for (const auto& [key, extent] : uploaded) expected.others.insert(extent.object);
  VARVE_TRY_ASSIGN(const auto garbage, state.garbage(std::numeric_limits<std::int64_t>::max(),
                                                     std::numeric_limits<std::uint64_t>::max(),
                                                     std::numeric_limits<std::size_t>::max()));
  expected.others.insert(garbage.begin(), garbage.end());
  VARVE_TRY_ASSIGN(const auto head_text, state.head());
  if (!head_text) return expected;
  VARVE_TRY_ASSIGN(const auto head, replica::decode_head(*head_text));
  expected.head = replica::head_name(head.repository_id, head.number);
  expected.objects[expected.head] = head_text->size();
  for (const auto& object : head.catalog) expected.objects[object.name] = object.bytes;
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  for (const auto& [path, extents] : map) {
    for (const auto& extent : extents) {
      if (!extent.object.empty()) expected.objects[extent.object] = extent.object_bytes;
    }
  }
  return expected;
}

// The store must refuse to create an object that exists. A store that does not would put the bytes
// that are there already.
Result<void> check_conditions(bucket::Bucket& bucket, StoreCheck& check) {
  const auto bytes = bucket.get_all(replica::kSuperblockName, kStoredBytesMax);
  if (!bytes && bytes.error().code() == ErrorCode::kNotFound) {
    check.damages.push_back({replica::kSuperblockName, "is missing"});
    return {};
  }
  if (!bytes) return bytes.error();
  const std::array<std::span<const std::byte>, 1> parts{*bytes};
  const auto put =
      bucket.put(replica::kSuperblockName, parts, {.condition = bucket::PutCondition::kIfAbsent});
  if (!put && put.error().code() == ErrorCode::kExists) return {};
  // Credentials that may only read need no conditions.
  if (!put && put.error().code() == ErrorCode::kNotPermitted) return {};
  if (!put && put.error().code() != ErrorCode::kUnsupported) return put;
  check.damages.push_back(
      {replica::kSuperblockName,
       "the store does not honour conditional requests (If-None-Match) any more: two writers could "
       "harm each other. Do not write until it does"});
  return {};
}

// A head writes what has changed since the one before. This finds whatever it may have missed.
Result<void> check_catalog(io::FileSystem& files, const std::string& folder, const Expected& known,
                           StoreCheck& check) {
  const auto differences = replica::differences_from_copy(files, folder);
  // The check of the repository reports a damaged catalog.
  if (!differences)
    return differences.error().code() == ErrorCode::kCorrupt ? Result<void>()
                                                             : Result<void>(differences.error());
  if (differences->value_or(0) == 0) return {};
  check.damages.push_back(
      {known.head, fmt::format("has other records of the catalog than this folder, {} of them. No "
                               "data is lost here; `varve repair --rebuild-catalog` writes the "
                               "catalog to the store again",
                               **differences)});
  return {};
}

Result<StoreCheck> check_objects(const std::string& folder, const OpenOptions& options,
                                 const BucketHooks& hooks) {
  VARVE_TRY_ASSIGN(const auto files, open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, replica::read_config(*files, folder));
  StoreCheck check;
  if (!config) return check;
  VARVE_TRY_ASSIGN(auto expected, read_expected(*files, folder));
  VARVE_TRY_ASSIGN(const auto bucket, bucket_opener(hooks, options.store.access)(*config));
  check.place = config->place;
  const auto prefix = expected.repository_id + "/";
  const base::SystemClock system_clock;
  const auto now = (hooks.clock != nullptr ? *hooks.clock : system_clock).now().seconds;
  auto missing = expected.objects;
  VARVE_TRY(
      bucket::list_all(*bucket, prefix, "", [&](const bucket::ObjectInfo& object) -> Result<void> {
        ++check.objects;
        check.bytes += object.bytes;
        const auto known = expected.objects.find(object.name);
        if (known != expected.objects.end()) {
          missing.erase(object.name);
          if (known->second == object.bytes) return {};
          check.damages.push_back(
              {object.name, fmt::format("has {} bytes, not {}", object.bytes, known->second)});
          return {};
        }
        const bool is_head = object.name.starts_with(replica::head_prefix(expected.repository_id));
        const bool is_young = now - object.modified.seconds < kForeignSeconds;
        if (is_head || is_young || expected.others.contains(object.name)) return {};
        ++check.foreign_objects;
        check.foreign_bytes += object.bytes;
        return {};
      }));
  for (const auto& [name, bytes] : missing) check.damages.push_back({name, "is missing"});
  if (config->reads_only) return check;
  VARVE_TRY(check_conditions(*bucket, check));
  VARVE_TRY(check_catalog(*files, folder, expected, check));
  return check;
}

}  // namespace
}  // namespace varve::repo

namespace varve {

Result<StoreCheck> check_store(const std::string& folder, const OpenOptions& options) {
  return repo::check_objects(folder, options, {});
}

}  // namespace varve

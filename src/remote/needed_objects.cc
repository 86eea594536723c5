// SPDX-License-Identifier: Apache-2.0
#include "remote/needed_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/coding.h"
#include "format/superblock.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/object_locks.h"
#include "remote/store_probe.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

// Younger objects may belong to a head still unknown to the folder.
constexpr std::int64_t kForeignSeconds = std::int64_t{24} * 60 * 60;

bool is_wrong(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTooLarge;
}

// Returns the fault of `varve.repo`, or nullopt.
Result<std::optional<std::string>> fault_of_superblock(bucket::Bucket& bucket,
                                                       const std::string& repository_id) {
  const auto bytes = bucket.get_all(kSuperblockName, format::kSuperblockBytesMax);
  if (!bytes) {
    if (bytes.error().code() == ErrorCode::kNotFound) {
      return std::optional<std::string>("is missing");
    }
    if (!is_wrong(bytes.error())) return bytes.error();
    return std::optional(bytes.error().message());
  }
  const auto superblock = format::decode_superblock(base::as_text(*bytes));
  if (!superblock) return std::optional(superblock.error().message());
  if (superblock->repository_id == repository_id) return std::optional<std::string>();
  return std::optional<std::string>("is that of another repository");
}

}  // namespace

Result<NeededObjects> needed_objects(io::FileSystem& files, const std::string& folder,
                                     const std::optional<ReplicaState>& state) {
  NeededObjects needed;
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  needed.repository_id = superblock.repository_id;
  if (!state) return needed;
  VARVE_TRY_ASSIGN(needed.lock_days, state->number(kLockDays));
  VARVE_TRY_ASSIGN(needed.probed, probe_record(*state));
  VARVE_TRY_ASSIGN(const auto uploaded, state->uploaded());
  for (const auto& [key, extent] : uploaded) needed.others.insert(extent.object);
  VARVE_TRY_ASSIGN(const auto garbage,
                   state->garbage().due(std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::uint64_t>::max(),
                                        std::numeric_limits<std::size_t>::max()));
  needed.others.insert(garbage.begin(), garbage.end());
  VARVE_TRY_ASSIGN(const auto head_text, state->head());
  if (!head_text) return needed;
  needed.head_text = *head_text;
  VARVE_TRY_ASSIGN(const auto head, decode_head(*head_text));
  needed.head = head_name(head.repository_id, head.number);
  needed.objects[needed.head] = head_text->size();
  for (const auto& object : head.catalog) needed.objects[object.name] = object.bytes;
  VARVE_TRY_ASSIGN(const auto map, state->objects());
  for (const auto& [path, extents] : map) {
    for (const auto& extent : extents) {
      if (!extent.object.empty()) needed.objects[extent.object] = extent.object_bytes;
    }
  }
  return needed;
}

Result<void> compare_list(bucket::Bucket& bucket, const NeededObjects& needed, std::int64_t now_s,
                          StoreCheck& check) {
  auto missing = needed.objects;
  VARVE_TRY(bucket::list_all(
      bucket, needed.repository_id + "/", "",
      [&](const bucket::ObjectInfo& object) -> Result<void> {
        ++check.objects;
        check.bytes += object.bytes;
        const auto known = needed.objects.find(object.name);
        if (known != needed.objects.end()) {
          missing.erase(object.name);
          if (known->second == object.bytes) return {};
          check.damages.push_back(
              {object.name, fmt::format("has {} bytes, not {}", object.bytes, known->second)});
          return {};
        }
        const bool is_head = head_number(needed.repository_id, object.name).has_value();
        const bool is_young = now_s - object.modified.seconds < kForeignSeconds;
        if (is_head || is_young || needed.others.contains(object.name)) return {};
        ++check.foreign_objects;
        check.foreign_bytes += object.bytes;
        return {};
      }));
  for (const auto& [name, bytes] : missing) check.damages.push_back({name, "is missing"});
  return {};
}

Result<void> compare_outer_objects(bucket::Bucket& bucket, const NeededObjects& needed,
                                   StoreCheck& check) {
  const auto fault = fault_of_superblock(bucket, needed.repository_id);
  if (!fault) return fault.error();
  if (*fault) check.damages.push_back({kSuperblockName, **fault});
  const bool is_told = std::ranges::any_of(
      check.damages, [&](const StoreDamage& damage) { return damage.object == needed.head; });
  if (needed.head.empty() || is_told) return {};
  const auto head = bucket.get_all(needed.head, needed.head_text.size());
  if (!head && !is_wrong(head.error())) return head.error();
  if (!head || base::as_text(*head) != needed.head_text) {
    check.damages.push_back({needed.head, "has other bytes than were written"});
  }
  return {};
}

}  // namespace varve::remote

// SPDX-License-Identifier: Apache-2.0
#include "remote/needed_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "format/superblock.h"
#include "remote/changes.h"
#include "remote/damage_notes.h"
#include "remote/head.h"
#include "remote/object_locks.h"
#include "remote/small_copies.h"
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

// Objects with copies need no ETags: a check reads these objects in full.
void note_etag(const NeededObjects& needed, const bucket::ObjectInfo& object,
               ListedObjects& listed) {
  if (!needed.has_etags || object.etag.empty()) return;
  if (needed.copies.contains(copy_name(object.name))) return;
  const auto noted = needed.etags.find(object.name);
  if (noted == needed.etags.end()) {
    listed.new_etags[object.name] = object.etag;
  } else if (noted->second != object.etag) {
    listed.changed_etags[object.name] = object.etag;
  }
}

}  // namespace

Result<NeededObjects> needed_objects(io::FileSystem& files, const std::string& folder,
                                     const std::optional<ReplicaState>& state) {
  NeededObjects needed;
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  needed.repository_id = superblock.repository_id;
  needed.damaged = read_damage_notes(files, folder);
  if (!state) return needed;
  VARVE_TRY_ASSIGN(needed.lock_days, state->number(kLockDays));
  VARVE_TRY_ASSIGN(needed.probed, probe_record(*state));
  VARVE_TRY_ASSIGN(needed.etags, state->etags().all());
  // An attached folder has tried nothing, and compares lists with lists.
  needed.has_etags = !needed.probed || needed.probed->abilities.lists_etags.value_or(false);
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
  VARVE_TRY_ASSIGN(needed.has_copies, has_all_copies(*state));
  needed.copies[copy_name(needed.head)] = head_text->size();
  needed.last_copies.insert(copy_name(needed.head));
  if (!head.catalog.empty()) needed.last_copies.insert(copy_name(head.catalog.back().name));
  for (const auto& object : small_objects(head, map)) {
    needed.copies[copy_name(object.name)] = object.bytes;
  }
  for (const auto& [path, extents] : map) {
    for (const auto& extent : extents) {
      if (!extent.object.empty()) needed.objects[extent.object] = extent.object_bytes;
    }
  }
  return needed;
}

Result<ListedObjects> compare_list(bucket::Bucket& bucket, const NeededObjects& needed,
                                   std::int64_t now_s, StoreCheck& check) {
  auto missing = needed.objects;
  ListedObjects listed;
  listed.damaged = needed.damaged;
  bool has_copies = needed.has_copies;
  VARVE_TRY(bucket::list_all(
      bucket, needed.repository_id + "/", "",
      [&](const bucket::ObjectInfo& object) -> Result<void> {
        ++check.objects;
        check.bytes += object.bytes;
        const auto copy = needed.copies.find(object.name);
        const bool is_copy = copy != needed.copies.end();
        if (is_copy) listed.copies.insert(object.name);
        has_copies = has_copies || needed.last_copies.contains(object.name);
        const auto known = is_copy ? copy : needed.objects.find(object.name);
        if (is_copy || known != needed.objects.end()) {
          missing.erase(object.name);
          if (known->second == object.bytes) {
            if (!is_copy) note_etag(needed, object, listed);
            return {};
          }
          check.damages.push_back(
              {object.name, fmt::format("has {} bytes, not {}", object.bytes, known->second)});
          return {};
        }
        const auto copied = copied_name(object.name);
        const bool is_head =
            head_number(needed.repository_id, copied ? *copied : object.name).has_value();
        const bool is_young = now_s - object.modified.seconds < kForeignSeconds;
        if (is_head || is_young || needed.others.contains(object.name)) return {};
        if (copied && needed.others.contains(*copied)) return {};
        ++check.foreign_objects;
        check.foreign_bytes += object.bytes;
        return {};
      }));
  std::vector<std::string> lacking;
  for (const auto& [name, bytes] : needed.copies) {
    if (has_copies && !listed.copies.contains(name)) lacking.push_back(name);
  }
  // The copy follows the head (O64), and an interrupted writer creates the copy later.
  if (needed.is_attached && lacking == std::vector{copy_name(needed.head)} &&
      !missing.contains(needed.head)) {
    check.notes.push_back("the newest head has no second copy yet; the folder that writes adds it");
    lacking.clear();
  }
  for (const auto& name : lacking) missing[name] = needed.copies.at(name);
  if (!has_copies && !needed.head.empty()) {
    check.notes.push_back("small objects have no second copy yet; the next seal writes the copies");
  }
  for (const auto& [name, bytes] : missing) check.damages.push_back({name, "is missing"});
  return listed;
}

Result<void> compare_outer_objects(bucket::Bucket& bucket, const NeededObjects& needed,
                                   const ListedObjects& listed, StoreCheck& check) {
  const auto fault = fault_of_superblock(bucket, needed.repository_id);
  if (!fault) return fault.error();
  if (*fault) check.damages.push_back({kSuperblockName, **fault});
  if (needed.head.empty()) return {};
  std::vector<std::string> names{needed.head};
  if (listed.copies.contains(copy_name(needed.head))) names.push_back(copy_name(needed.head));
  for (const auto& name : names) {
    const bool is_known = std::ranges::any_of(
        check.damages, [&](const StoreDamage& damage) { return damage.object == name; });
    if (is_known) continue;
    const auto head = bucket.get_all(name, needed.head_text.size());
    if (!head && !is_wrong(head.error())) return head.error();
    if (!head || base::as_text(*head) != needed.head_text) {
      check.damages.push_back({name, "has other bytes than were written"});
    }
  }
  return {};
}

}  // namespace varve::remote

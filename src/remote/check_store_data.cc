// SPDX-License-Identifier: Apache-2.0
#include "remote/check_store_data.h"

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "remote/catalog_reads.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/readable_head.h"

namespace varve::remote {

namespace {

// Limit of object bytes read at the same time.
constexpr std::uint64_t kObjectBytesAtOnce = std::uint64_t{32} << 20;

const std::string& name_of(const Extent& extent) { return extent.object; }
const std::string& name_of(const CatalogObject& object) { return object.name; }

/// Reads objects in groups; the objects of a group are read at the same time.
template <typename Object>
class GroupedReads {
 public:
  using Read = std::function<Result<void>(const std::vector<Object>& group)>;
  /// Lifetime: `check` outlives the object.
  GroupedReads(Read read, StoreCheck& check) : read_(std::move(read)), check_(check) {}

  /// Adds an object. First reads the present group, if the group has no room for the object.
  Result<void> add(const Object& object) {
    if (!group_.empty() && bytes_ + object.bytes > kObjectBytesAtOnce) VARVE_TRY(finish());
    group_.push_back(object);
    bytes_ += object.bytes;
    ++check_.objects_read;
    check_.bytes_read += object.bytes;
    return {};
  }
  /// Reads the last group.
  Result<void> finish() {
    const auto group = std::exchange(group_, {});
    bytes_ = 0;
    if (group.empty() || read_(group)) return {};
    for (const auto& object : group) VARVE_TRY(read_one(object));
    return {};
  }

 private:
  // Adds the damage of an object, if reading the object alone fails, too.
  Result<void> read_one(const Object& object) {
    const auto got = read_({object});
    if (got) return {};
    const auto code = got.error().code();
    if (code == ErrorCode::kUnavailable || code == ErrorCode::kNotPermitted) return got.error();
    check_.damages.push_back(
        {name_of(object), code == ErrorCode::kNotFound
                              ? "is missing"
                              : "has other bytes than were uploaded: " + got.error().message()});
    return {};
  }

  const Read read_;
  StoreCheck& check_;
  std::vector<Object> group_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<void> check_newer_head(bucket::Bucket& bucket, const std::string& repository_id,
                              const ReplicaState& state, StoreCheck& check) {
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return {};
  VARVE_TRY_ASSIGN(const auto known, decode_head(*text));
  const auto what =
      fmt::format("is lost, with its copy: this folder shows the older head {}", known.number);
  const auto add = [&](const std::string& name) {
    check.damages.push_back({name, what});
    check.damages.push_back({copy_name(name), what});
  };
  CommitLog log(bucket, repository_id);
  const auto newest = readable_head(log, *text);
  // The list has shown already that the known head is lost.
  if (!newest) return is_loss(newest.error()) ? Result<void>() : newest.error();
  if (newest->fault) add(log.name(newest->newest));
  VARVE_TRY_ASSIGN(const auto head, decode_head(newest->text));
  const auto news = std::span(head.catalog).subspan(common_front(head.catalog, known.catalog));
  for (const auto& object : news) {
    const auto read = read_all_or_copies(bucket, {&object, 1});
    if (read) continue;
    if (!is_loss(read.error())) return read.error();
    add(object.name);
  }
  return {};
}

Result<void> read_objects(bucket::Bucket& bucket, const ReplicaState& state, ObjectsToRead which,
                          const ListedObjects& listed, StoreCheck& check) {
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return {};
  VARVE_TRY_ASSIGN(const auto head, decode_head(*text));
  std::set<std::string> seen;  // Objects read already, or damaged according to the list.
  for (const auto& damage : check.damages) seen.insert(damage.object);
  GroupedReads<CatalogObject> catalog(
      [&](const auto& group) -> Result<void> {
        VARVE_TRY(read_catalog_objects(bucket, group));
        return {};
      },
      check);
  for (auto object : head.catalog) {
    if (seen.insert(object.name).second) VARVE_TRY(catalog.add(object));
    object.name = copy_name(object.name);
    if (!listed.copies.contains(object.name)) continue;
    if (seen.insert(object.name).second) VARVE_TRY(catalog.add(object));
  }
  VARVE_TRY(catalog.finish());
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  GroupedReads<Extent> data(
      [&](const auto& group) -> Result<void> {
        VARVE_TRY(read_extents(bucket, group));
        return {};
      },
      check);
  for (const auto& [path, extents] : map) {
    for (const auto& known : extents) {
      auto extent = whole_object(known);
      const bool is_noted = listed.damaged.contains(extent.object);
      if (which != ObjectsToRead::kAll && extent.mark == 0 && !is_noted) continue;
      if (which == ObjectsToRead::kCopied && !has_copy(path, extent) && !is_noted) continue;
      if (extent.object.empty()) continue;
      if (seen.insert(extent.object).second) VARVE_TRY(data.add(extent));
      extent.object = copy_name(extent.object);
      if (!listed.copies.contains(extent.object)) continue;
      if (seen.insert(extent.object).second) VARVE_TRY(data.add(extent));
    }
  }
  return data.finish();
}

}  // namespace varve::remote

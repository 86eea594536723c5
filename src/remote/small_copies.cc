// SPDX-License-Identifier: Apache-2.0
#include "remote/small_copies.h"

#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "remote/catalog_reads.h"
#include "remote/head_objects.h"
#include "remote/local_notes.h"
#include "remote/lock_order.h"

namespace varve::remote {

std::vector<SmallObject> small_objects(const Head& head, const ObjectMap& map) {
  std::vector<SmallObject> objects;
  for (const auto& object : head.catalog) {
    objects.push_back({object.name, kWholeCatalog, object.bytes, [object](bucket::Bucket& bucket) {
                         return read_catalog_object(bucket, object);
                       }});
  }
  for (const auto& [path, extents] : map) {
    for (const auto& part : extents) {
      if (!has_copy(path, part)) continue;
      const auto extent = whole_object(part);
      objects.push_back({extent.object, path, extent.bytes,
                         [extent](bucket::Bucket& bucket) -> Result<std::string> {
                           VARVE_TRY_ASSIGN(auto texts, read_extents(bucket, {extent}));
                           return std::move(texts.front());
                         }});
    }
  }
  return objects;
}

Result<bool> has_all_copies(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return true;
  VARVE_TRY_ASSIGN(const auto head, decode_head(*text));
  VARVE_TRY_ASSIGN(const auto number, state.number(kCopiesKey));
  return number == head.number;
}

Result<void> note_copies(ReplicaState& state, std::uint64_t number) {
  return state.set_number(kCopiesKey, number);
}

Result<void> write_copy(bucket::Bucket& bucket, const std::string& name,
                        std::span<const std::byte> bytes) {
  const std::array<std::span<const std::byte>, 1> body{bytes};
  return bucket.put(copy_name(name), body, {});
}

Result<void> add_missing_copies(bucket::Bucket& bucket, Uploads& uploads,
                                const std::string& repository_id,
                                const std::vector<SmallObject>& objects) {
  std::map<std::string, const SmallObject*> missing;
  for (const auto& object : objects) missing.emplace(copy_name(object.name), &object);
  if (missing.empty()) return {};
  for (const auto* const folder : {"/cat/", "/other/"}) {
    VARVE_TRY(bucket::list_all(bucket, repository_id + folder, "",
                               [&](const bucket::ObjectInfo& listed) -> Result<void> {
                                 missing.erase(listed.name);
                                 return {};
                               }));
  }
  for (const auto& [copy, original] : missing) {
    VARVE_TRY(uploads.begin(
        original->bytes,
        [&bucket, object = *original]() -> Result<void> {
          const auto text = object.read(bucket);
          if (text) return write_copy(bucket, object.name, base::as_bytes(*text));
          if (!is_loss(text.error())) return text.error();
          base::log(base::LogLevel::kWarning, text.error().message() + "; run `varve repair`");
          return {};
        },
        nullptr));
  }
  return {};
}

}  // namespace varve::remote

// SPDX-License-Identifier: Apache-2.0
#include "replica/head_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/coding.h"
#include "meta/stored_records.h"
#include "replica/changes.h"

namespace varve::replica {

Result<void> apply_to_catalog(const meta::Env& copy, const std::vector<std::string>& parts,
                              bool replaces) {
  VARVE_TRY_ASSIGN(auto writer, meta::StoredWriter::begin(copy));
  const auto& tables = catalog_tables();
  if (replaces) {
    for (const auto* const table : tables) VARVE_TRY(writer.clear(table));
  }
  for (const auto& part : parts) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      if (change.table == kObjectsTable) return {};
      const auto* const table = tables[change.table];
      if (!change.value) return writer.erase(table, change.key);
      return writer.put(table, {change.key, *change.value});
    }));
  }
  return writer.commit();
}

Result<std::string> read_catalog_object(bucket::Bucket& bucket, const CatalogObject& object) {
  if (object.bytes > kCatalogObjectBytesMax) {
    return Error(ErrorCode::kCorrupt, object.name + " is longer than any catalog object");
  }
  VARVE_TRY_ASSIGN(const auto bytes, bucket.get_all(object.name, object.bytes));
  auto text = std::string(base::as_text(bytes));
  if (text.size() == object.bytes && digest_of(text) == object.digest) return text;
  return Error(ErrorCode::kCorrupt, fmt::format("{}/{} has other bytes than its head says",
                                                bucket.describe(), object.name));
}

Result<std::string> read_head(bucket::Bucket& bucket, const std::string& name) {
  VARVE_TRY_ASSIGN(const auto bytes, bucket.get_all(name, kHeadBytesMax));
  auto text = std::string(base::as_text(bytes));
  const auto head = decode_head(text);
  if (!head) return Error(head.error()).with_context(bucket.describe() + "/" + name);
  if (head_name(head->repository_id, head->number) != name) {
    return Error(ErrorCode::kCorrupt, bucket.describe() + "/" + name + " is another head");
  }
  return text;
}

// Of the heads that a page shows, the last one is the least likely to be removed meanwhile.
Result<std::optional<std::string>> later_head(bucket::Bucket& bucket,
                                              const std::string& repository_id,
                                              std::uint64_t number) {
  const auto prefix = head_prefix(repository_id);
  auto after = head_name(repository_id, number);
  while (true) {
    VARVE_TRY_ASSIGN(const auto page, bucket.list(prefix, after, bucket::kListMax));
    if (!page.objects.empty()) after = page.objects.back().name;
    const auto last = std::find_if(
        page.objects.rbegin(), page.objects.rend(),
        [&](const auto& object) { return head_number(repository_id, object.name).has_value(); });
    if (last != page.objects.rend()) {
      auto text = read_head(bucket, last->name);
      if (text) return std::optional(*std::move(text));
      if (text.error().code() != ErrorCode::kNotFound) return text.error();
    }
    if (page.objects.empty() && page.is_last) return std::optional<std::string>();
  }
}

std::size_t common_front(const std::vector<CatalogObject>& a, const std::vector<CatalogObject>& b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differ.first - a.begin());
}

}  // namespace varve::replica

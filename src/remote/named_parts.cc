// SPDX-License-Identifier: Apache-2.0
#include "remote/named_parts.h"

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "remote/catalog_reads.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/small_pairs.h"

namespace varve::remote {

namespace {

constexpr std::size_t kCatalogObjectsRead = 16;

/// The parts of labels that catalog objects name, by the keys of the map of objects.
class NamedParts {
 public:
  explicit NamedParts(const crypto::KeyRing* keys) : keys_(keys) {}

  /// Adds the changes of an object. `seconds`: the object's time. Errors: kCorrupt for damage; the
  /// changes before the damage count.
  Result<void> add(std::string_view catalog_object, std::int64_t seconds) {
    return for_each_change(catalog_object, [&](const Change& change) -> Result<void> {
      if (change.table != kObjectsTable) return {};
      Named named{.seconds = seconds};
      if (change.value) {
        VARVE_TRY_ASSIGN(const auto record, decode_extent(change.key, *change.value));
        const auto part = decode_lead(record.extent.lead, keys_);
        if (part) named.evidence = {*part, record.extent.object};
      }
      auto& newest = newest_[std::string(change.key)];
      if (named.rank() >= newest.rank()) newest = std::move(named);
      return {};
    });
  }
  /// Returns the parts without an object among `present`.
  [[nodiscard]] std::vector<LabelEvidence> missing(const std::set<std::string>& present) const {
    std::vector<LabelEvidence> missing;
    for (const auto& [key, named] : newest_) {
      const auto& object = named.evidence.object;
      if (!object.empty() && !present.contains(object)) missing.push_back(named.evidence);
    }
    return missing;
  }

 private:
  struct Named {
    std::int64_t seconds = 0;
    LabelEvidence evidence{};  // Without an object: no labels, or a removed record.
    // A time of the store has whole seconds.
    [[nodiscard]] std::pair<std::int64_t, std::uint64_t> rank() const {
      return {seconds, evidence.part.head};
    }
  };
  const crypto::KeyRing* keys_;
  std::map<std::string, Named> newest_;
};

}  // namespace

// Of the catalog objects, the newest ones tell which parts the newest labels have.
Result<std::vector<LabelEvidence>> missing_parts(bucket::Bucket& bucket,
                                                 const std::vector<bucket::ObjectInfo>& catalog,
                                                 const std::vector<bucket::ObjectInfo>& others,
                                                 const crypto::KeyRing* keys) {
  std::set<std::string> present;
  for (const auto& object : others) {
    const auto original = copied_name(object.name);
    present.insert(original ? *original : object.name);
  }
  NamedParts named(keys);
  std::size_t reads = 0;
  for (const auto& pair : pairs_of(catalog)) {
    if (reads++ == kCatalogObjectsRead) break;
    if (pair.bytes > kCatalogObjectBytesMax) continue;
    for (const auto& name : pair.names) {
      const auto text = bucket.get_all(name, pair.bytes);
      if (!text && !is_loss(text.error())) return text.error();
      if (text && named.add(base::as_text(*text), pair.seconds)) break;
    }
  }
  return named.missing(present);
}

}  // namespace varve::remote

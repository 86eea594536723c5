// SPDX-License-Identifier: Apache-2.0
#include "catalog/name_table.h"

#include <string>
#include <utility>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {

namespace {

using meta::catalog::kNames;

// Returns the table's number for a key; 0, an invalid number, for a damaged record.
std::optional<std::uint32_t> number_at(const meta::Txn& txn, const std::string& key) {
  const auto value = txn.get(kNames, key);
  if (!value) return 0;
  if (!*value) return std::nullopt;
  base::ByteReader r(**value);
  const std::uint32_t number = r.u32();
  return r.done() ? number : 0;
}

}  // namespace

NameSpace NameSpace::of_versions(SeriesId series) {
  return NameSpace(std::string(1, kVersionByte) + meta::series_key(series));
}

// A hash can begin with any byte. The byte before the hash separates hashes from the odd keys.
std::string NameSpace::key(const meta::Env& catalog, std::string_view name) const {
  return catalog.key_of_name(catalog.seal() != nullptr ? prefix_ + '\1' : prefix_, name);
}

std::string NameSpace::odd_prefix() const { return prefix_ + '\0'; }

std::string NameSpace::odd_key(std::uint32_t number) const {
  return odd_prefix() + base::be32(number);
}

Result<bool> has_all_names(const meta::Txn& txn) {
  if (!txn.has(kNames)) return false;
  VARVE_TRY_ASSIGN(const auto names, txn.count(kNames));
  VARVE_TRY_ASSIGN(const auto series, txn.count(meta::catalog::kSeries));
  VARVE_TRY_ASSIGN(const auto versions, txn.count(meta::catalog::kVersions));
  return names == series + versions;
}

NameAnswer find_name(const meta::Txn& txn, const NameSpace& space, std::string_view name) {
  const auto all = has_all_names(txn);
  if (!all || !*all || name.empty() || name.size() > kNameBytesMax) return {};
  const auto number = number_at(txn, space.key(txn.env(), name));
  if (number) return {*number != 0, number};
  // The record may be displayed under a replaced name.
  const auto prefix = space.odd_prefix();
  auto cursor = meta::Cursor::open(txn, kNames);
  if (!cursor) return {};
  const auto odd = cursor->seek(prefix);
  if (!odd || (*odd && (*odd)->key.starts_with(prefix))) return {};
  return {true, std::nullopt};
}

Result<void> change_name(meta::WriteTxn& txn, const NameSpace& space, std::uint32_t number,
                         const std::optional<StoredName>& before,
                         const std::optional<StoredName>& after) {
  const auto odd = space.odd_key(number);
  std::string from = odd;
  if (before && before->allowed) {
    auto key = space.key(txn.env(), before->name);
    const auto holder = number_at(txn, key);
    if (holder && (*holder == number || *holder == 0)) from = std::move(key);
  }
  std::string to = odd;
  if (after && after->allowed) {
    auto key = space.key(txn.env(), after->name);
    const auto holder = number_at(txn, key);
    if (!holder || *holder == number || *holder == 0) to = std::move(key);
  }
  if (before && after && from == to && from != odd) return {};
  if (before) VARVE_TRY(txn.erase(kNames, from));
  if (!after) return {};
  std::string value;
  base::ByteWriter(value).u32(number);
  return txn.put(kNames, to, value);
}

}  // namespace varve::catalog

// SPDX-License-Identifier: Apache-2.0
#include "maintain/manifest_substitute.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "catalog/birth_table.h"
#include "maintain/manifest_file.h"
#include "maintain/tree_chunks.h"
#include "maintain/write_batch.h"
#include "meta/schema.h"

namespace varve::maintain {

namespace {

// Copies the records of a table whose keys begin with `prefix`.
Result<void> copy_records(const meta::Txn& from, const meta::Env& to, meta::TableIndex table,
                          std::string_view prefix) {
  WriteBatch batch(to);
  const auto copy = [&](std::string_view key, std::string_view value) -> Result<bool> {
    VARVE_TRY_ASSIGN(auto* const txn, batch.txn(value.size()));
    VARVE_TRY(txn->put(table, key, value));
    return true;
  };
  VARVE_TRY(meta::for_each_prefix(from, table, prefix, copy));
  return batch.commit();
}

}  // namespace

Result<std::optional<ManifestRecords>> copy_version(const meta::Env& from, const meta::Env& to,
                                                    const catalog::VersionRecord& version) {
  const auto series = version.series;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(from));
  const auto known = catalog::find_version(txn, series, version.number);
  const auto key = meta::version_key(series, version.number);
  if (!known || !*known || !is_same_seal(**known, version)) return std::optional<ManifestRecords>();
  VARVE_TRY_ASSIGN(const auto chunks, txn.get(meta::catalog::kVersionChunks, key));
  if (!chunks) return std::optional<ManifestRecords>();
  // The key of an object begins with the series and the version that stored the object.
  VARVE_TRY(copy_records(txn, to, meta::catalog::kNodes, key));
  VARVE_TRY(copy_records(txn, to, meta::catalog::kRecipes, key));
  bool readable = true;
  static_cast<void>(tree_chunks(to, series, version.root, readable));
  if (!readable) return std::optional<ManifestRecords>();
  ManifestRecords records;
  records.chunks = *chunks;
  VARVE_TRY_ASSIGN(const auto links, txn.get(meta::catalog::kVersionLinks, key));
  if (links) records.links = std::string(*links);
  VARVE_TRY_ASSIGN(records.births, catalog::births_named_by(txn, series, version.number));
  return std::optional(std::move(records));
}

}  // namespace varve::maintain

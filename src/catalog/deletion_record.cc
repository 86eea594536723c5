// SPDX-License-Identifier: Apache-2.0
#include "catalog/deletion_record.h"

#include <string>

#include "base/coding.h"
#include "base/time_coding.h"
#include "meta/schema.h"

namespace varve::catalog {
namespace {

std::string deletion_key(SeriesId series) {
  return std::string(kDeletedSetting) + meta::series_key(series);
}

}  // namespace

Result<std::optional<DeletionRecord>> find_deletion(const meta::Txn& txn, SeriesId series) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, deletion_key(series)));
  if (!value) return std::optional<DeletionRecord>();
  base::ByteReader r(*value);
  DeletionRecord record;
  record.labels_stamp = r.varint();
  while (r.ok() && !r.done()) {
    const auto number = VersionNumber{r.u32()};
    record.sealed[number] = base::get_time(r);
  }
  if (!r.done()) return Error(ErrorCode::kCorrupt, "catalog: the note of a deletion is damaged");
  return std::optional(std::move(record));
}

Result<void> note_deletion(meta::WriteTxn& txn, SeriesId series, DeletionRecord record) {
  auto before = find_deletion(txn, series);
  const bool is_later = before && *before && (*before)->labels_stamp == record.labels_stamp;
  if (is_later) record.sealed.merge((*before)->sealed);
  std::string out;
  base::ByteWriter w(out);
  w.varint(record.labels_stamp);
  for (const auto& [number, sealed_at] : record.sealed) {
    w.u32(static_cast<std::uint32_t>(number));
    base::put_time(w, sealed_at);
  }
  return txn.put(meta::catalog::kSettings, deletion_key(series), out);
}

Result<void> erase_deletion(meta::WriteTxn& txn, SeriesId series) {
  return txn.erase(meta::catalog::kSettings, deletion_key(series));
}

}  // namespace varve::catalog

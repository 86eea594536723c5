// SPDX-License-Identifier: Apache-2.0
#include "catalog/refused_record.h"

#include <string>

#include "base/coding.h"
#include "base/time_coding.h"
#include "meta/schema.h"

namespace varve::catalog {
namespace {

std::string refused_key(SeriesId series) {
  return std::string(kRefusedSetting) + meta::series_key(series);
}

}  // namespace

Result<std::optional<RefusedRecord>> find_refused(const meta::Txn& txn, SeriesId series) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, refused_key(series)));
  if (!value) return std::optional<RefusedRecord>();
  base::ByteReader r(*value);
  RefusedRecord record;
  record.newest = VersionNumber{r.u32()};
  const std::uint8_t reason = r.u8();
  record.store.at = base::get_time(r);
  // A newer Varve may have further reasons.
  record.store.reason = reason == static_cast<std::uint8_t>(RefusalReason::kShrunk)
                            ? RefusalReason::kShrunk
                            : RefusalReason::kEmpty;
  if (!r.done()) {
    return Error(ErrorCode::kCorrupt, "catalog: the note of a refused store is damaged");
  }
  return std::optional(record);
}

Result<void> put_refused(meta::WriteTxn& txn, SeriesId series, const RefusedRecord& record) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(static_cast<std::uint32_t>(record.newest));
  w.u8(static_cast<std::uint8_t>(record.store.reason));
  base::put_time(w, record.store.at);
  return txn.put(meta::catalog::kSettings, refused_key(series), out);
}

Result<void> erase_refused(meta::WriteTxn& txn, SeriesId series) {
  return txn.erase(meta::catalog::kSettings, refused_key(series));
}

}  // namespace varve::catalog

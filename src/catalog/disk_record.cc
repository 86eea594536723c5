// SPDX-License-Identifier: Apache-2.0
#include "catalog/disk_record.h"

#include <string>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {
Result<std::optional<DiskRecord>> find_disk_record(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kDiskSetting));
  if (!value) return std::optional<DiskRecord>();
  base::ByteReader r(*value);
  DiskRecord record;
  record.request_nanoseconds = r.u64();
  record.bytes_per_second = r.u64();
  record.disk_bytes = r.u64();
  record.measured_seconds = static_cast<std::int64_t>(r.u64());
  if (!r.done()) return std::optional<DiskRecord>();
  return std::optional<DiskRecord>(record);
}

Result<void> put_disk_record(meta::WriteTxn& txn, const DiskRecord& record) {
  std::string out;
  base::ByteWriter w(out);
  w.u64(record.request_nanoseconds);
  w.u64(record.bytes_per_second);
  w.u64(record.disk_bytes);
  w.u64(static_cast<std::uint64_t>(record.measured_seconds));
  return txn.put(meta::catalog::kSettings, kDiskSetting, out);
}

}  // namespace varve::catalog

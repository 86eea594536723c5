// SPDX-License-Identifier: Apache-2.0
#include "catalog/key_record.h"

#include <string>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::catalog {

Result<std::uint32_t> find_key_counter(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kKeyCounterSetting));
  if (!value) return std::uint32_t{0};
  base::ByteReader r(*value);
  const auto counter = r.u32();
  if (!r.done()) return Error(ErrorCode::kCorrupt, "the catalog's counter of keys is malformed");
  return counter;
}

Result<void> put_key_counter(meta::WriteTxn& txn, std::uint32_t counter) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(counter);
  return txn.put(meta::catalog::kSettings, kKeyCounterSetting, out);
}

}  // namespace varve::catalog

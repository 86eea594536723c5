// SPDX-License-Identifier: Apache-2.0
#include "catalog/sequence_record.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/coding.h"
#include "catalog/key_record.h"
#include "meta/schema.h"

namespace varve::catalog {

Result<std::uint64_t> decode_sequence(std::string_view bytes) {
  base::ByteReader r(bytes);
  const auto sequence = r.u64();
  // No count reaches the last number, behind which the next one would be 0.
  if (!r.done() || sequence == UINT64_MAX)
    return Error(ErrorCode::kCorrupt, "the catalog's sequence number is malformed");
  return sequence;
}

Result<std::uint64_t> find_sequence(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kSequenceSetting));
  if (!value) return std::uint64_t{0};
  return decode_sequence(*value);
}

Result<void> put_sequence(meta::WriteTxn& txn, std::uint64_t sequence) {
  std::string out;
  base::ByteWriter w(out);
  w.u64(sequence);
  return txn.put(meta::catalog::kSettings, kSequenceSetting, out);
}

bool counts_in_sequence(meta::TableIndex table, std::string_view key) {
  // docs/FORMAT.md §7 lists the names. The labels are written after each change of a setting (O20).
  constexpr std::array<std::string_view, 5> kSettings = {"arrange", kKeyCounterSetting,
                                                         "new_series", "pool_index", "upkeep"};
  switch (table) {
    case meta::catalog::kSeries:
    case meta::catalog::kVersions:
    case meta::catalog::kRetention:
      return true;
    case meta::catalog::kSettings:
      return std::ranges::find(kSettings, key) != kSettings.end();
    default:
      return false;
  }
}

Result<void> advance_sequence(meta::WriteTxn& txn) {
  VARVE_TRY_ASSIGN(const auto present, find_sequence(txn));
  if (present + 1 == UINT64_MAX) {
    return Error(ErrorCode::kTooLarge, "no sequence number is left; run `varve check`");
  }
  return put_sequence(txn, present + 1);
}

}  // namespace varve::catalog

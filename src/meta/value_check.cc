// SPDX-License-Identifier: Apache-2.0
#include "meta/value_check.h"

#include <string_view>
#include <utility>

namespace varve::meta {

Result<ValueFaults> find_value_faults(const Txn& txn, TableIndex table,
                                      const std::function<bool(std::uint64_t bytes)>& goes_on) {
  constexpr std::uint64_t kBytesAtOnce = std::uint64_t{1} << 20;
  ValueFaults found;
  VARVE_TRY_ASSIGN(const auto records, txn.count(table));
  VARVE_TRY_ASSIGN(auto cursor, Cursor::open(txn, table));
  std::uint64_t bytes = 0;
  // The cursor continues behind an unreadable value, unless the pages are damaged.
  for (auto entry = cursor.seek(""); found.values <= records; entry = cursor.next()) {
    if (!entry && entry.error().code() != ErrorCode::kCorrupt) return entry.error();
    if (!entry && found.values++ == 0) found.first = entry.error().message();
    if (!entry) continue;
    if (!*entry) break;
    const std::string_view value = (*entry)->value;
    bytes += (*entry)->key.size() + value.size();
    if (!goes_on || bytes < kBytesAtOnce) continue;
    found.finished = goes_on(std::exchange(bytes, 0));
    if (!found.finished) return found;
  }
  if (goes_on) found.finished = goes_on(bytes);
  return found;
}

}  // namespace varve::meta

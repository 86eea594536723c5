// SPDX-License-Identifier: Apache-2.0
#include "meta/key_renewal.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace varve::meta {

namespace {

// Bounds the changed pages in LMDB's memory. The copy may not have more commits than the original.
constexpr std::size_t kCommitBytes = std::size_t{128} << 20;

}  // namespace

Result<void> copy_records(const Txn& original, const Env& copy, const DerivedTable& derived) {
  std::optional<WriteTxn> txn;
  std::size_t bytes = 0;
  const auto begin = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto begun, WriteTxn::begin(copy));
    txn.emplace(std::move(begun));
    bytes = 0;
    return {};
  };
  VARVE_TRY(begin());
  for (TableIndex table = 0; original.has(table); ++table) {
    if (table == derived.table) continue;
    const auto copied = for_each_prefix(
        original, table, "", [&](std::string_view key, std::string_view value) -> Result<bool> {
          VARVE_TRY(txn->append(table, key, value));
          bytes += key.size() + value.size();
          if (bytes < kCommitBytes) return true;
          VARVE_TRY(txn->commit());
          VARVE_TRY(begin());
          return true;
        });
    VARVE_TRY(copied);
  }
  VARVE_TRY(derived.fill(*txn));
  return txn->commit();
}

Result<void> compare_records(const Txn& original, const Txn& copy, const DerivedTable& derived) {
  for (TableIndex table = 0; original.has(table); ++table) {
    if (table == derived.table) continue;
    VARVE_TRY_ASSIGN(auto before, Cursor::open(original, table));
    VARVE_TRY_ASSIGN(auto after, Cursor::open(copy, table));
    VARVE_TRY_ASSIGN(auto was, before.seek(""));
    VARVE_TRY_ASSIGN(auto is, after.seek(""));
    while (was && is && was->key == is->key && was->value == is->value) {
      VARVE_TRY_ASSIGN(was, before.next());
      VARVE_TRY_ASSIGN(is, after.next());
    }
    if (was || is) {
      return Error(ErrorCode::kCorrupt, "compacting the catalog: the copy differs");
    }
  }
  return {};
}

}  // namespace varve::meta

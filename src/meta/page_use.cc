// SPDX-License-Identifier: Apache-2.0
#include "meta/page_use.h"

#include <lmdb.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace varve::meta {

namespace {

constexpr MDB_dbi kFreePages = 0;  // LMDB's own table of free pages.

}  // namespace

Result<PageUse> page_use(const Env& env) {
  PageUse use;
  const UsedBytes used = used_bytes(env);
  use.used = used.bytes;
  VARVE_TRY_ASSIGN(const auto txn, ReadTxn::begin(env));
  MDB_cursor* cursor = nullptr;
  if (const int rc = mdb_cursor_open(txn.raw(), kFreePages, &cursor); rc != 0) {
    return Error(ErrorCode::kIo,
                 std::string("cannot read the catalog's free pages: ") + mdb_strerror(rc));
  }
  MDB_val key{};
  MDB_val value{};
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    std::size_t pages = 0;  // The list begins with the number of pages.
    if (value.mv_size >= sizeof(pages)) std::memcpy(&pages, value.mv_data, sizeof(pages));
    use.free += pages * used.page_bytes;
  }
  mdb_cursor_close(cursor);
  return use;
}

}  // namespace varve::meta

// SPDX-License-Identifier: Apache-2.0
#include <lmdb.h>

#include "meta/lmdb.h"
#include "meta/stored_value.h"

namespace varve::meta {

Result<Cursor> Cursor::open(const Txn& txn, TableIndex table) {
  MDB_cursor* cursor = nullptr;
  if (!txn.env().has(table)) return Cursor(txn.env(), table, cursor);
  const int rc = mdb_cursor_open(txn.raw(), txn.env().table(table), &cursor);
  if (rc != 0) return error_from_lmdb(rc, "open a cursor");
  return Cursor(txn.env(), table, cursor);
}

Cursor::~Cursor() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
}

Result<std::optional<Cursor::Stored>> Cursor::move(int op, std::string_view key) {
  if (cursor_ == nullptr) return std::optional<Stored>();  // A missing table.
  MDB_val k = to_val(key);
  MDB_val v{};
  const int rc = mdb_cursor_get(cursor_, &k, &v, static_cast<MDB_cursor_op>(op));
  if (rc == MDB_NOTFOUND) return std::optional<Stored>();
  if (rc != 0) return error_from_lmdb(rc, "read");
  return std::optional(Stored{to_view(k), to_view(v)});
}

Result<std::optional<KeyValue>> Cursor::opened(const std::optional<Stored>& stored) const {
  if (!stored) return std::optional<KeyValue>();
  VARVE_TRY_ASSIGN(auto value, env_->value_of(table_, stored->key, stored->value));
  return std::optional(KeyValue{stored->key, std::move(value)});
}

Result<std::optional<KeyValue>> Cursor::get(int op, std::string_view key) {
  VARVE_TRY_ASSIGN(const auto stored, move(op, key));
  return opened(stored);
}

Result<std::optional<KeyValue>> Cursor::seek(std::string_view key) {
  return key.empty() ? get(MDB_FIRST, key) : get(MDB_SET_RANGE, key);
}

Result<std::optional<KeyValue>> Cursor::seek_behind(std::string_view prefix) {
  // A last byte of 255 has no successor: the byte before it is raised.
  std::string next(prefix.substr(0, prefix.find_last_not_of('\xff') + 1));
  if (next.empty()) return std::optional<KeyValue>();
  next.back() = static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
  return seek(next);
}

Result<std::optional<KeyValue>> Cursor::seek_at_or_before(std::string_view key) {
  VARVE_TRY_ASSIGN(const auto at, move(MDB_SET_RANGE, key));
  if (at && at->key == key) return opened(at);
  return get(at ? MDB_PREV : MDB_LAST, {});
}

Result<std::optional<KeyValue>> Cursor::next() { return get(MDB_NEXT, {}); }

Result<std::optional<KeyValue>> Cursor::previous() { return get(MDB_PREV, {}); }

}  // namespace varve::meta

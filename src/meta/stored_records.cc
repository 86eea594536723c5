// SPDX-License-Identifier: Apache-2.0
#include "meta/stored_records.h"

#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/system_error.h"

namespace varve::meta {

namespace {

MDB_val val_of(std::string_view s) { return {s.size(), const_cast<char*>(s.data())}; }
std::string_view view_of(const MDB_val& v) {
  return {static_cast<const char*>(v.mv_data), v.mv_size};
}

Error stored_error(int rc, const char* what) {
  const auto message = std::string("catalog: ") + what + ": " + mdb_strerror(rc);
  if (rc == ENOSPC || rc == EDQUOT || rc == MDB_MAP_FULL) {
    return {ErrorCode::kNoSpace, message + "; free some space on the repository's disk"};
  }
  return rc > 0 ? base::io_error(std::string("catalog: ") + what, rc)
                : Error(ErrorCode::kCorrupt, message);
}

// Returns nullopt for a missing table.
Result<std::optional<MDB_dbi>> table_named(MDB_txn* txn, const char* name, unsigned flags) {
  MDB_dbi table = 0;
  const int rc = mdb_dbi_open(txn, name, flags, &table);
  if (rc == MDB_NOTFOUND) return std::optional<MDB_dbi>();
  if (rc != 0) return stored_error(rc, "open a table");
  return std::optional(table);
}

}  // namespace

Result<StoredCursor> StoredCursor::open(const Txn& txn, const char* table) {
  MDB_cursor* cursor = nullptr;
  VARVE_TRY_ASSIGN(const auto opened, table_named(txn.raw(), table, 0));
  if (!opened) return StoredCursor(cursor);
  const int rc = mdb_cursor_open(txn.raw(), *opened, &cursor);
  if (rc != 0) return stored_error(rc, "open a cursor");
  return StoredCursor(cursor);
}

StoredCursor::~StoredCursor() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
}

Result<std::optional<StoredRecord>> StoredCursor::next() {
  if (cursor_ == nullptr) return std::optional<StoredRecord>();
  MDB_val key{};
  MDB_val value{};
  const int rc = mdb_cursor_get(cursor_, &key, &value, MDB_NEXT);
  if (rc == MDB_NOTFOUND) return std::optional<StoredRecord>();
  if (rc != 0) return stored_error(rc, "read");
  return std::optional(StoredRecord{view_of(key), view_of(value)});
}

Result<std::optional<std::string_view>> find_stored(const Txn& txn, const char* table,
                                                    std::string_view key) {
  VARVE_TRY_ASSIGN(const auto opened, table_named(txn.raw(), table, 0));
  if (!opened) return std::optional<std::string_view>();
  MDB_val k = val_of(key);
  MDB_val v{};
  const int rc = mdb_get(txn.raw(), *opened, &k, &v);
  if (rc == MDB_NOTFOUND) return std::optional<std::string_view>();
  if (rc != 0) return stored_error(rc, "read");
  return std::optional(view_of(v));
}

Result<StoredWriter> StoredWriter::begin(const Env& env) {
  VARVE_TRY_ASSIGN(auto txn, WriteTxn::begin(env));
  return StoredWriter(std::move(txn));
}

Result<void> StoredWriter::put(const char* table, const StoredRecord& record) {
  VARVE_TRY_ASSIGN(const auto opened, table_named(txn_.raw(), table, MDB_CREATE));
  // A copy: the put overwrites pages of the map, and the record may be in the map.
  const std::string value(record.value);
  MDB_val k = val_of(record.key);
  MDB_val v = val_of(value);
  pages_touched_ += 8 + 2 * (value.size() >> 12);
  const int rc = mdb_put(txn_.raw(), *opened, &k, &v, 0);
  return rc == 0 ? Result<void>() : stored_error(rc, "write");
}

Result<void> StoredWriter::erase(const char* table, std::string_view key) {
  VARVE_TRY_ASSIGN(const auto opened, table_named(txn_.raw(), table, 0));
  if (!opened) return {};
  MDB_val k = val_of(key);
  pages_touched_ += 8;
  const int rc = mdb_del(txn_.raw(), *opened, &k, nullptr);
  return rc == 0 || rc == MDB_NOTFOUND ? Result<void>() : stored_error(rc, "erase");
}

Result<void> StoredWriter::clear(const char* table) {
  VARVE_TRY_ASSIGN(const auto opened, table_named(txn_.raw(), table, 0));
  if (!opened) return {};
  const int rc = mdb_drop(txn_.raw(), *opened, 0);
  return rc == 0 ? Result<void>() : stored_error(rc, "clear a table");
}

// Makes the file long enough first, as in WriteTxn::commit().
Result<void> StoredWriter::commit() {
  MDB_envinfo info{};
  MDB_stat page{};
  int fd = -1;
  auto* const env = txn_.env().raw();
  mdb_env_info(env, &info);
  mdb_env_stat(env, &page);
  mdb_env_get_fd(env, &fd);
  struct stat file {};
  if (::fstat(fd, &file) != 0) return stored_error(errno, "read the file's length");
  const auto enough = (std::uint64_t{info.me_last_pgno} + 1 + pages_touched_) * page.ms_psize;
  if (static_cast<std::uint64_t>(file.st_size) < enough &&
      ::ftruncate(fd, static_cast<off_t>(enough)) != 0) {
    return stored_error(errno, "lengthen the file");
  }
  return txn_.commit();
}

}  // namespace varve::meta

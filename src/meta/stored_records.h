// SPDX-License-Identifier: Apache-2.0
// Records in the form stored by an environment: with checksums and, in an encrypted environment,
// sealed. Copying an environment by stored records needs no keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "meta/lmdb.h"
#include "meta/lmdb_types.h"
#include "varve/result.h"

namespace varve::meta {

/// A record as stored. Lifetime: as in Txn.
struct StoredRecord {
  std::string_view key;
  std::string_view value;
};

/// Walks the stored records of a table in key order. Not thread-safe.
/// Lifetime: the transaction must outlive the cursor.
class StoredCursor {
 public:
  /// Opens the table `table`. A missing table has no records.
  [[nodiscard]] static Result<StoredCursor> open(const Txn& txn, const char* table);
  StoredCursor(StoredCursor&& other) noexcept : cursor_(std::exchange(other.cursor_, nullptr)) {}
  StoredCursor& operator=(StoredCursor&&) = delete;
  StoredCursor(const StoredCursor&) = delete;
  StoredCursor& operator=(const StoredCursor&) = delete;
  ~StoredCursor();

  /// Returns the next record; nullopt past the end.
  [[nodiscard]] Result<std::optional<StoredRecord>> next();

 private:
  explicit StoredCursor(MDB_cursor* cursor) : cursor_(cursor) {}
  MDB_cursor* cursor_;
};

/// Returns the stored value of a key, or nullopt without the table or the key.
[[nodiscard]] Result<std::optional<std::string_view>> find_stored(const Txn& txn, const char* table,
                                                                  std::string_view key);

/// Writes stored records in a single transaction. Aborts unless committed. For one thread.
class StoredWriter {
 public:
  [[nodiscard]] static Result<StoredWriter> begin(const Env& env);

  /// Writes a record of the table `table`. Creates the table if needed.
  [[nodiscard]] Result<void> put(const char* table, const StoredRecord& record);
  /// Removes a record. A missing record is no error.
  [[nodiscard]] Result<void> erase(const char* table, std::string_view key);
  /// Removes all records of a table.
  [[nodiscard]] Result<void> clear(const char* table);
  /// Commits the changes. After a return without error, the changes are on disk.
  [[nodiscard]] Result<void> commit();

 private:
  explicit StoredWriter(WriteTxn txn) : txn_(std::move(txn)) {}

  WriteTxn txn_;
  std::uint64_t pages_touched_ = 32;  // Upper bound of the pages added by commit().
};

}  // namespace varve::meta

// SPDX-License-Identifier: Apache-2.0
// LMDB with ownership: environments, transactions and cursors that release all resources. Every
// value carries a checksum over key and bytes, verified at each read. In an encrypted environment,
// values are sealed (meta/value_seal.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "meta/env_files.h"
#include "meta/lmdb_types.h"
#include "meta/text_count.h"
#include "meta/value.h"
#include "meta/value_seal.h"
#include "varve/result.h"

namespace varve::meta {

/// Index into the list of table names given when the Env was opened.
using TableIndex = std::size_t;

struct EnvOptions {
  std::span<const char* const> tables;
  /// Number of tables at the end of `tables` that may be missing in an environment opened
  /// read-only: missing tables read as empty, and Txn::has() returns false.
  std::size_t optional_tables = 0;
  bool read_only = false;
  /// True to refuse an absent or empty environment instead of creating one.
  bool must_exist = false;
  /// Path of the file locked by a writer of the environment: see EnvFiles.
  std::string writer_lock;
  /// Address space for the map, in bytes; the file grows only when data fills it.
  std::size_t map_bytes = std::size_t{256} << 30;
  /// Size of the map if the address space has no room for `map_bytes`; 0 = an error instead.
  std::size_t map_bytes_min = 0;
  /// The keys of the values. An encrypted environment opens only with the keys of its creation, a
  /// plain environment only without keys.
  EnvKeys keys{};
  /// Number of texts after which the environment's key encrypts no more. Tests set a smaller limit.
  std::uint64_t texts_max = crypto::kTextsMax;
  /// True to open an encrypted environment without its keys. Values are then the stored bytes.
  bool without_keys = false;
  /// True in a child process after fork(), which shares no environment with the parent. The child
  /// does not destroy the Env: the parent uses the table of readers.
  bool in_forked_child = false;
};

class WriteTxn;

/// An open environment. Thread-safe. Commits are synchronous (no NOSYNC, no WRITEMAP).
///
/// After a failed write of a meta page, LMDB refuses all transactions of its environment. The next
/// transaction then opens the file again (docs/ORDERING.md O74).
class Env {
 public:
  /// Opens an environment. Creates missing tables unless read-only.
  /// Errors: kCorrupt also if the environment's keys differ from the keys of `options`.
  [[nodiscard]] static Result<Env> open(EnvFiles files, const EnvOptions& options);
  [[nodiscard]] static Result<Env> open(io::FileSystem& files, const std::string& directory,
                                        const EnvOptions& options);
  /// Opens an environment in an existing folder protected from other users, such as a test's
  /// folder.
  [[nodiscard]] static Result<Env> open(const std::string& directory, const EnvOptions& options);
  Env(Env&& other) noexcept;
  Env& operator=(Env&&) = delete;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;
  ~Env();

  /// Counts the records read by all later reads of transactions. Call count_reads() before other
  /// threads use the environment. Lifetime: `counter` outlives the environment.
  void count_reads(base::Counter& counter) { reads_ = &counter; }
  void count_read() const {
    if (reads_ != nullptr) reads_->add();
  }

  /// Calls `prepare` before each write transaction begins; an error prevents the transaction. Call
  /// before_writes() before other threads use the environment. `prepare` must be thread-safe.
  void before_writes(std::function<Result<void>()> prepare) { prepare_ = std::move(prepare); }
  [[nodiscard]] Result<void> prepare_write() const {
    return prepare_ ? prepare_() : Result<void>();
  }

  /// Calls `complete` before the commit of each write transaction that changed a record for which
  /// `matters` returns true; an error prevents the commit. Call before_commits() before other
  /// threads use the environment. Both functions must be thread-safe.
  void before_commits(std::function<bool(TableIndex, std::string_view key)> matters,
                      std::function<Result<void>(WriteTxn&)> complete) {
    matters_ = std::move(matters);
    complete_ = std::move(complete);
  }
  /// Returns whether a change of the record matters to before_commits().
  [[nodiscard]] bool matters(TableIndex table, std::string_view key) const {
    return matters_ && matters_(table, key);
  }
  [[nodiscard]] Result<void> complete(WriteTxn& txn) const { return complete_(txn); }

  [[nodiscard]] const EnvFiles& files() const { return files_; }
  [[nodiscard]] MDB_env* raw() const { return env_; }
  /// Begins a transaction of LMDB. `flags`: MDB_RDONLY or 0.
  [[nodiscard]] Result<MDB_txn*> begin(unsigned flags, const char* what) const;
  /// Syncs the file before the first write after the file was opened again.
  [[nodiscard]] Result<void> sync_restored() const;
  [[nodiscard]] TableHandle table(TableIndex index) const { return tables_[index]; }
  [[nodiscard]] bool has(TableIndex index) const { return index < tables_.size(); }
  [[nodiscard]] const char* name_of(TableIndex index) const { return names_[index]; }
  [[nodiscard]] const EnvKeys& keys() const { return keys_; }
  /// Returns the seal of the values; null in a plain environment.
  [[nodiscard]] const ValueSeal* seal() const { return seal_.get(); }
  /// Returns the count of the texts under the environment's key; null in a plain environment.
  [[nodiscard]] TextCount* texts() const { return texts_.get(); }
  /// Returns the value of a stored record, and counts the read. Errors: as Txn::get().
  [[nodiscard]] Result<Value> value_of(TableIndex table, std::string_view key,
                                       std::string_view stored) const;
  /// Returns the key of a named record: `prefix` and the name or, in an encrypted environment, a
  /// keyed hash of both. The hashes are in no useful order.
  [[nodiscard]] std::string key_of_name(std::string_view prefix, std::string_view name) const;

 private:
  explicit Env(EnvFiles files) : files_(std::move(files)) {}
  [[nodiscard]] Result<int> map(std::size_t bytes, MDB_env*& env) const;
  /// Opens the file again, unless another thread has replaced `failed`.
  [[nodiscard]] Result<void> open_again(const MDB_env* failed) const;
  /// Opens the tables in an environment of the same file. Errors: kIo if a table gets another
  /// handle.
  [[nodiscard]] Result<void> open_same_tables(MDB_env* fresh) const;
  [[nodiscard]] Result<void> open_seal(MDB_txn* txn, const EnvOptions& options);
  [[nodiscard]] Result<void> open_tables(MDB_txn* txn, const EnvOptions& options);

  EnvFiles files_;  // Outlives the environment.
  mutable std::atomic<MDB_env*> env_ = nullptr;
  mutable std::mutex opening_;  // Held while the file is opened again. Taken before OpenEnvs' lock.
  mutable std::atomic<bool> is_restored_ = false;  // See sync_restored().
  std::size_t map_bytes_ = 0;
  unsigned tables_max_ = 0;
  unsigned flags_ = 0;      // Of mdb_env_open(), without MDB_NOLOCK.
  bool is_shared_ = false;  // OpenEnvs closes the environment.
  std::vector<TableHandle> tables_;
  std::vector<const char*> names_;  // Names of the tables.
  EnvKeys keys_;
  std::shared_ptr<const ValueSeal> seal_;
  std::unique_ptr<TextCount> texts_;
  base::Counter* reads_ = nullptr;
  std::function<Result<void>()> prepare_;
  std::function<bool(TableIndex, std::string_view)> matters_;
  std::function<Result<void>(WriteTxn&)> complete_;
};

/// The part of an environment's file used by the newest commit.
struct UsedBytes {
  std::uint64_t bytes = 0;  ///< Size of the used pages. The file may be longer.
  std::uint64_t page_bytes = 0;
};
[[nodiscard]] UsedBytes used_bytes(const Env& env);

/// Returns the error for a data.mdb shorter than its pages.
[[nodiscard]] Error truncated(const std::string& directory);

struct KeyValue {
  std::string_view key;
  Value value;
};

/// The reads of both kinds of transaction.
/// Lifetime: keys and the views of values die with the transaction, and in a WriteTxn with the next
/// change.
class Txn {
 public:
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;
  Txn& operator=(Txn&&) = delete;

  /// Returns the value of a key, or nullopt if the key is absent. Errors: kCorrupt if the value's
  /// checksum is wrong, or if the value cannot be decrypted.
  [[nodiscard]] Result<std::optional<Value>> get(TableIndex table, std::string_view key) const;
  /// Returns false if the environment lacks an optional table. Other functions refuse a missing
  /// table.
  [[nodiscard]] bool has(TableIndex table) const { return env_->has(table); }
  /// Returns the number of records of a table.
  [[nodiscard]] Result<std::uint64_t> count(TableIndex table) const;
  /// Returns a number that ascends with each commit to the environment. In a ReadTxn: the number of
  /// the last commit visible to the transaction.
  [[nodiscard]] std::uint64_t id() const;
  [[nodiscard]] MDB_txn* raw() const { return txn_; }
  [[nodiscard]] const Env& env() const { return *env_; }

 protected:
  Txn(const Env& env, MDB_txn* txn) : env_(&env), txn_(txn) {}
  Txn(Txn&& other) noexcept : env_(other.env_), txn_(std::exchange(other.txn_, nullptr)) {}
  ~Txn();
  const Env* env_;
  MDB_txn* txn_;
};

/// A read transaction, with a snapshot of the environment. A ReadTxn may move between threads, but
/// only one thread uses the ReadTxn at a time.
class ReadTxn final : public Txn {
 public:
  /// Errors: kStale if the environment's key has changed: the owner of the catalog renewed the key,
  /// and the process has received a head of an object store with the new key.
  [[nodiscard]] static Result<ReadTxn> begin(const Env& env);
  ReadTxn(ReadTxn&&) noexcept = default;

 private:
  using Txn::Txn;
};

/// A write transaction. Aborts unless committed. The same thread begins, uses and commits the
/// transaction; begin() waits for the other writer.
class WriteTxn final : public Txn {
 public:
  [[nodiscard]] static Result<WriteTxn> begin(const Env& env);
  WriteTxn(WriteTxn&&) noexcept = default;

  [[nodiscard]] Result<void> put(TableIndex table, std::string_view key, std::string_view value);
  /// As put(), for ascending keys in a new table: the table's pages become full.
  [[nodiscard]] Result<void> append(TableIndex table, std::string_view key, std::string_view value);
  /// Removes a key. An absent key is no error.
  [[nodiscard]] Result<void> erase(TableIndex table, std::string_view key);
  /// Removes the records whose keys start with `prefix`, without reading values.
  [[nodiscard]] Result<void> erase_prefix(TableIndex table, std::string_view prefix);
  /// Removes all records of a table.
  [[nodiscard]] Result<void> clear(TableIndex table);
  /// Commits the changes. After a return without error, the changes are on disk.
  /// Errors: kTooLarge if the environment's key has reached the limit of encrypted texts.
  [[nodiscard]] Result<void> commit();

 private:
  using Txn::Txn;
  [[nodiscard]] Result<void> store(TableIndex table, std::string_view key, std::string_view value,
                                   unsigned flags);
  [[nodiscard]] Result<crypto::NonceSeed> next_seed();

  bool matters_ = false;                  // See Env::before_commits().
  bool seals_ = false;                    // True once a value was sealed.
  std::uint64_t pages_touched_ = 32;      // Upper bound of the pages added by commit().
  std::vector<crypto::NonceSeed> seeds_;  // Random bytes not used by any value yet.
};

/// Walks a table in key order.
class Cursor {
 public:
  [[nodiscard]] static Result<Cursor> open(const Txn& txn, TableIndex table);
  Cursor(Cursor&& other) noexcept
      : env_(other.env_), table_(other.table_), cursor_(std::exchange(other.cursor_, nullptr)) {}
  Cursor& operator=(Cursor&&) = delete;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  ~Cursor();

  /// Returns the first entry whose key is >= `key`; nullopt past the end.
  [[nodiscard]] Result<std::optional<KeyValue>> seek(std::string_view key);
  /// Returns the first entry behind all keys that begin with `prefix`; nullopt past the end.
  [[nodiscard]] Result<std::optional<KeyValue>> seek_behind(std::string_view prefix);
  /// Returns the last entry whose key is <= `key`; nullopt if there is none.
  [[nodiscard]] Result<std::optional<KeyValue>> seek_at_or_before(std::string_view key);
  [[nodiscard]] Result<std::optional<KeyValue>> next();
  [[nodiscard]] Result<std::optional<KeyValue>> previous();

 private:
  /// A record as stored.
  struct Stored {
    std::string_view key;
    std::string_view value;
  };
  Cursor(const Env& env, TableIndex table, MDB_cursor* cursor)
      : env_(&env), table_(table), cursor_(cursor) {}
  // `op` is an MDB_cursor_op.
  [[nodiscard]] Result<std::optional<Stored>> move(int op, std::string_view key);
  [[nodiscard]] Result<std::optional<KeyValue>> opened(const std::optional<Stored>& stored) const;
  [[nodiscard]] Result<std::optional<KeyValue>> get(int op, std::string_view key);
  const Env* env_;
  TableIndex table_;
  MDB_cursor* cursor_;
};

/// Calls `visit(key, value)` for every entry whose key starts with `prefix`, in key order.
/// `visit` returns Result<bool>: false stops.
template <typename Visit>
[[nodiscard]] Result<void> for_each_prefix(const Txn& txn, TableIndex table,
                                           std::string_view prefix, Visit&& visit) {
  VARVE_TRY_ASSIGN(auto cursor, Cursor::open(txn, table));
  VARVE_TRY_ASSIGN(auto entry, cursor.seek(prefix));
  while (entry && entry->key.starts_with(prefix)) {
    VARVE_TRY_ASSIGN(const bool more, visit(entry->key, entry->value));
    if (!more) break;
    VARVE_TRY_ASSIGN(entry, cursor.next());
  }
  return {};
}

}  // namespace varve::meta

// SPDX-License-Identifier: Apache-2.0
#include "meta/lmdb.h"

#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "base/system_error.h"
#include "io/free_space.h"
#include "io/posix_file_system.h"
#include "meta/open_envs.h"
#include "meta/page_format.h"
#include "meta/stored_value.h"

namespace varve::meta {

namespace {

struct FileLength {
  int fd = -1;
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;  // Number of pages in the newest commit.
  std::uint64_t bytes = 0;
};

Result<FileLength> file_length(MDB_env* env) {
  MDB_envinfo info{};
  MDB_stat page{};
  FileLength length;
  mdb_env_info(env, &info);
  mdb_env_stat(env, &page);
  mdb_env_get_fd(env, &length.fd);
  struct stat file {};
  if (fstat(length.fd, &file) != 0) return error_from_lmdb(errno, "read the file's length");
  length.page_bytes = page.ms_psize;
  length.pages = std::uint64_t{info.me_last_pgno} + 1;
  length.bytes = static_cast<std::uint64_t>(file.st_size);
  return length;
}

// LMDB maps the file and would die of SIGBUS at missing pages. LMDB also takes an empty file for a
// new environment. LMDB never writes pages that a transaction allocated and freed before the
// commit, so a sound file could be short, too. Therefore commit() makes the file long enough first
// (with a hole). A shorter file has been truncated.
Result<void> check_length(MDB_env* env, const std::string& directory) {
  VARVE_TRY_ASSIGN(const auto length, file_length(env));
  if (length.bytes < length.pages * length.page_bytes) return truncated(directory);
  return {};
}

// Checks that LMDB has opened the checked file.
Result<void> check_identity(MDB_env* env, const EnvFiles& files) {
  int fd = -1;
  struct stat opened {};
  struct stat checked {};
  mdb_env_get_fd(env, &fd);
  if (fstat(fd, &opened) != 0 || fstat(files.data(), &checked) != 0 ||
      opened.st_dev != checked.st_dev || opened.st_ino != checked.st_ino) {
    return Error(ErrorCode::kIo, files.directory() + ": LMDB opened another file");
  }
  return {};
}

}  // namespace

Error truncated(const std::string& directory) {
  return {ErrorCode::kCorrupt,
          directory + "/data.mdb is truncated; restore it from a copy of the repository"};
}

Env::Env(Env&& other) noexcept
    : files_(other.files_),
      env_(other.env_.exchange(nullptr)),
      is_restored_(other.is_restored_.load()),
      map_bytes_(other.map_bytes_),
      tables_max_(other.tables_max_),
      flags_(other.flags_),
      is_shared_(other.is_shared_),
      tables_(std::move(other.tables_)),
      names_(std::move(other.names_)),
      keys_(std::move(other.keys_)),
      seal_(std::move(other.seal_)),
      texts_(std::move(other.texts_)),
      reads_(other.reads_),
      prepare_(std::move(other.prepare_)),
      matters_(std::move(other.matters_)),
      complete_(std::move(other.complete_)) {}

Env::~Env() {
  // The last use of a reader table closes the environments opened with the table.
  if (env_ != nullptr && files_.use() == nullptr) mdb_env_close(env_);
}

Result<Env> Env::open(const std::string& directory, const EnvOptions& options) {
  return open(*io::make_posix_file_system(), directory, options);
}

Result<Env> Env::open(io::FileSystem& files, const std::string& directory,
                      const EnvOptions& options) {
  VARVE_TRY_ASSIGN(auto opened, EnvFiles::open(files, directory, options));
  return open(std::move(opened), options);
}

// Returns LMDB's code for the opening, 0 for success.
Result<int> Env::map(std::size_t bytes, MDB_env*& env) const {
  OpenEnvs::Request request;
  request.data = files_.data();
  request.map_bytes = bytes;
  request.tables_max = tables_max_;
  request.flags = flags_;
  VARVE_TRY_ASSIGN(const auto names, EnvNames::make(files_));
  request.folder = names.folder();
  if (is_shared_) return OpenEnvs::of_process().open(*files_.use(), request, env);
  if (files_.use() == nullptr) request.flags |= MDB_NOLOCK;
  return OpenEnvs::open_unshared(request, env);
}

// LMDB has put the former meta page back, so the file has the content of the last commit. LMDB's
// refusal protects users that go on with the failed environment's memory (O74).
Result<void> Env::open_again(const MDB_env* failed) const {
  const std::lock_guard lock(opening_);
  if (env_ != failed) return {};
  if (!is_shared_) return error_from_lmdb(MDB_PANIC, "open again");
  OpenEnvs::of_process().retire(*files_.use(), failed);
  MDB_env* fresh = nullptr;
  VARVE_TRY_ASSIGN(const int rc, map(map_bytes_, fresh));
  if (rc != 0) return error_from_lmdb(rc, "open again");
  VARVE_TRY(check_identity(fresh, files_));
  VARVE_TRY(check_length(fresh, files_.directory()));
  VARVE_TRY(open_same_tables(fresh));
  is_restored_ = true;
  env_ = fresh;
  base::log(base::LogLevel::kWarning,
            files_.directory() + ": opened again, after a write to the disk has failed");
  return {};
}

// The disk may have the meta page of the failed commit. The next transaction overwrites pages of
// that commit, so the former meta page must be on the disk first (O74).
Result<void> Env::sync_restored() const {
  if (!is_restored_) return {};
  if (const int rc = mdb_env_sync(raw(), 1); rc != 0) return error_from_lmdb(rc, "sync");
  is_restored_ = false;
  return {};
}

// Tables get ascending handles, in the order of the opening.
Result<void> Env::open_same_tables(MDB_env* fresh) const {
  MDB_txn* txn = nullptr;
  int rc = mdb_txn_begin(fresh, nullptr, MDB_RDONLY, &txn);
  if (rc != 0) return error_from_lmdb(rc, "open again");
  const auto has_handle = [&](const char* name, TableHandle wanted) {
    TableHandle table = 0;
    rc = mdb_dbi_open(txn, name, 0, &table);
    return rc == 0 && table == wanted;
  };
  bool same = texts_ == nullptr || has_handle(kSealTable, texts_->table());
  for (TableIndex i = 0; same && i < tables_.size(); ++i) same = has_handle(names_[i], tables_[i]);
  if (!same) mdb_txn_abort(txn);
  if (same) rc = mdb_txn_commit(txn);
  if (rc != 0) return error_from_lmdb(rc, "open a table again");
  if (!same) return error_from_lmdb(MDB_PANIC, "open a table again");
  return {};
}

Result<MDB_txn*> Env::begin(unsigned flags, const char* what) const {
  MDB_txn* txn = nullptr;
  auto* const present = raw();
  int rc = mdb_txn_begin(present, nullptr, flags, &txn);
  if (rc == MDB_PANIC) {
    VARVE_TRY(open_again(present));
    rc = mdb_txn_begin(raw(), nullptr, flags, &txn);
  }
  if (rc != 0) return error_from_lmdb(rc, what);
  const auto synced = (flags & MDB_RDONLY) == 0 ? sync_restored() : Result<void>();
  if (!synced) {
    mdb_txn_abort(txn);
    return synced.error();
  }
  return txn;
}

Result<Env> Env::open(EnvFiles files, const EnvOptions& options) {
  const auto& directory = files.directory();
  Env env(files);
  env.map_bytes_ = options.map_bytes;
  env.tables_max_ = static_cast<unsigned>(options.tables.size() + 1);
  env.flags_ = MDB_NOTLS | MDB_NORDAHEAD | (options.read_only ? unsigned{MDB_RDONLY} : 0U);
  env.is_shared_ = files.use() != nullptr && !options.in_forked_child;
  MDB_env* raw = nullptr;
  VARVE_TRY_ASSIGN(int rc, env.map(env.map_bytes_, raw));
  if (rc == ENOMEM && options.map_bytes_min != 0) {
    env.map_bytes_ = options.map_bytes_min;
    VARVE_TRY_ASSIGN(rc, env.map(env.map_bytes_, raw));
  }
  env.env_ = raw;
  if (rc != 0) return error_from_lmdb(rc, ("open " + directory).c_str());
  VARVE_TRY(check_identity(env.env_, files));
  VARVE_TRY(check_length(env.env_, directory));
  int dead = 0;
  mdb_reader_check(env.env_, &dead);
  VARVE_TRY_ASSIGN(auto* const txn, env.begin(options.read_only ? MDB_RDONLY : 0U, "open"));
  auto opened = env.open_seal(txn, options);
  if (opened) opened = env.open_tables(txn, options);
  if (!opened) {
    mdb_txn_abort(txn);
    return std::move(opened).error();
  }
  rc = mdb_txn_commit(txn);
  if (rc != 0) return error_from_lmdb(rc, "open");
  return env;
}

// A plain environment in place of an encrypted environment could be an attacker's, so opening
// fails.
Result<void> Env::open_seal(MDB_txn* txn, const EnvOptions& options) {
  if (options.without_keys) return {};
  const auto& keys = options.keys;
  MDB_dbi table = 0;
  MDB_val key = to_val(kSaltKey);
  MDB_val value{};
  int rc = mdb_dbi_open(txn, kSealTable, 0, &table);
  if (rc == 0) rc = mdb_get(txn, table, &key, &value);
  if (rc != 0 && rc != MDB_NOTFOUND) return error_from_lmdb(rc, "open");
  const bool is_sealed = rc == 0;
  if (!keys.ring) {
    if (!is_sealed) return {};
    return Error(ErrorCode::kCorrupt,
                 "the database is encrypted, but varve.repo is that of a plain repository; put the "
                 "right file back: varve.keys is a copy of it");
  }
  keys_ = keys;
  if (is_sealed) {
    VARVE_TRY_ASSIGN(const auto record, verified_value(kSaltKey, to_view(value)));
    VARVE_TRY_ASSIGN(seal_, ValueSeal::open(keys, record));
    texts_ = std::make_unique<TextCount>(table, seal_, keys.purpose, options.texts_max);
    return {};
  }
  MDB_stat names{};
  rc = mdb_stat(txn, kNamesTable, &names);
  if (rc != 0) return error_from_lmdb(rc, "open");
  if (options.read_only || options.must_exist || names.ms_entries != 0) {
    return Error(ErrorCode::kCorrupt,
                 "the database is not encrypted, but the repository is; restore it from a copy of "
                 "the repository");
  }
  VARVE_TRY_ASSIGN(seal_, ValueSeal::make(keys));
  std::string record = seal_->record();
  base::ByteWriter(record).u32(value_checksum(kSaltKey, record));
  value = to_val(record);
  rc = mdb_dbi_open(txn, kSealTable, MDB_CREATE, &table);
  if (rc == 0) rc = mdb_put(txn, table, &key, &value, 0);
  if (rc != 0) return error_from_lmdb(rc, "create");
  texts_ = std::make_unique<TextCount>(table, seal_, keys.purpose, options.texts_max);
  return texts_->start(txn);
}

Result<void> Env::open_tables(MDB_txn* txn, const EnvOptions& options) {
  for (const char* name : options.tables) {
    MDB_dbi dbi = 0;
    const int rc = mdb_dbi_open(txn, name, options.read_only ? 0U : MDB_CREATE, &dbi);
    const auto left = options.tables.size() - tables_.size();
    if (rc == MDB_NOTFOUND && left <= options.optional_tables) break;
    if (rc != 0) return error_from_lmdb(rc == MDB_NOTFOUND ? MDB_INVALID : rc, "open a table");
    tables_.push_back(dbi);
    names_.push_back(name);
  }
  return {};
}

Result<Value> Env::value_of(TableIndex table, std::string_view key, std::string_view stored) const {
  count_read();
  VARVE_TRY_ASSIGN(const auto value, verified_value(key, stored));
  if (seal_ == nullptr) return Value(value);
  return seal_->open(name_of(table), key, value);
}

std::string Env::key_of_name(std::string_view prefix, std::string_view name) const {
  return std::string(prefix).append(seal_ ? seal_->hash_of(prefix, name) : name);
}

UsedBytes used_bytes(const Env& env) {
  MDB_envinfo info{};
  MDB_stat page{};
  mdb_env_info(env.raw(), &info);
  mdb_env_stat(env.raw(), &page);
  return {(std::uint64_t{info.me_last_pgno} + 1) * page.ms_psize, page.ms_psize};
}

Txn::~Txn() {
  if (txn_ != nullptr) mdb_txn_abort(txn_);
}

Result<std::optional<Value>> Txn::get(TableIndex table, std::string_view key) const {
  if (!env_->has(table)) return std::optional<Value>();
  MDB_val k = to_val(key);
  MDB_val v{};
  const int rc = mdb_get(txn_, env_->table(table), &k, &v);
  if (rc == MDB_NOTFOUND) return std::optional<Value>();
  if (rc != 0) return error_from_lmdb(rc, "read");
  VARVE_TRY_ASSIGN(auto value, env_->value_of(table, key, to_view(v)));
  return std::optional(std::move(value));
}

Result<std::uint64_t> Txn::count(TableIndex table) const {
  if (!env_->has(table)) return std::uint64_t{0};
  MDB_stat stat{};
  const int rc = mdb_stat(txn_, env_->table(table), &stat);
  if (rc != 0) return error_from_lmdb(rc, "read");
  return std::uint64_t{stat.ms_entries};
}

static_assert(std::is_same_v<TableHandle, MDB_dbi>);

std::uint64_t Txn::id() const { return mdb_txn_id(txn_); }

Result<ReadTxn> ReadTxn::begin(const Env& env) {
  VARVE_TRY_ASSIGN(auto* const txn, env.begin(MDB_RDONLY, "begin reading"));
  ReadTxn begun(env, txn);
  if (env.texts() != nullptr) VARVE_TRY(env.texts()->check_salt(txn));
  return begun;
}

Result<WriteTxn> WriteTxn::begin(const Env& env) {
  VARVE_TRY(env.prepare_write());
  VARVE_TRY_ASSIGN(auto* const txn, env.begin(0, "begin writing"));
  WriteTxn begun(env, txn);
  // Cuts off the end of the file unused by the last commit: WriteTxn excludes all other writers.
  VARVE_TRY_ASSIGN(const auto length, file_length(env.raw()));
  const auto used = length.pages * length.page_bytes;
  if (length.bytes > used && ftruncate(length.fd, static_cast<off_t>(used)) != 0) {
    // A full disk that copies on write has no block for the cut. A later writer shortens the file.
    if (errno != ENOSPC && errno != EDQUOT) return error_from_lmdb(errno, "shorten the file");
  }
  return begun;
}

// Random numbers in batches are much faster. A batch dies with its transaction, so no fork of the
// process can use the same batch.
Result<crypto::NonceSeed> WriteTxn::next_seed() {
  constexpr std::size_t kBatch = 64;
  if (seeds_.empty()) {
    seeds_.resize(kBatch);
    VARVE_TRY(base::fill_random(std::as_writable_bytes(std::span(seeds_))));
  }
  const auto seed = seeds_.back();
  seeds_.pop_back();
  return seed;
}

Result<void> WriteTxn::put(TableIndex table, std::string_view key, std::string_view value) {
  return store(table, key, value, 0);
}

Result<void> WriteTxn::append(TableIndex table, std::string_view key, std::string_view value) {
  return store(table, key, value, MDB_APPEND);
}

Result<void> WriteTxn::store(TableIndex table, std::string_view key, std::string_view value,
                             unsigned flags) {
  // Made before the put, which overwrites pages of the map: `value` may be in such a page.
  std::string stored;
  if (const auto* const seal = env_->seal()) {
    VARVE_TRY_ASSIGN(const auto seed, next_seed());
    const char* const name = env_->name_of(table);
    stored.resize(ValueSeal::sealed_bytes(name, value.size()));
    seal->seal(name, key, seed, value, std::as_writable_bytes(std::span(stored)));
    env_->texts()->add();
    seals_ = true;
  } else {
    stored = value;
  }
  base::ByteWriter(stored).u32(value_checksum(key, stored));
  MDB_val k = to_val(key);
  MDB_val v = to_val(stored);
  pages_touched_ += 8 + 2 * (value.size() >> 12);
  const int rc = mdb_put(txn_, env_->table(table), &k, &v, flags);
  if (rc != 0) return error_from_lmdb(rc, "write");
  matters_ = matters_ || env_->matters(table, key);
  return {};
}

Result<void> WriteTxn::erase(TableIndex table, std::string_view key) {
  MDB_val k = to_val(key);
  pages_touched_ += 8;
  const int rc = mdb_del(txn_, env_->table(table), &k, nullptr);
  if (rc != 0 && rc != MDB_NOTFOUND) return error_from_lmdb(rc, "erase");
  matters_ = matters_ || (rc == 0 && env_->matters(table, key));
  return {};
}

Result<void> WriteTxn::erase_prefix(TableIndex table, std::string_view prefix) {
  MDB_cursor* cursor = nullptr;
  int rc = mdb_cursor_open(txn_, env_->table(table), &cursor);
  if (rc != 0) return error_from_lmdb(rc, "open a cursor");
  MDB_val k = to_val(prefix);
  MDB_val v{};
  rc = mdb_cursor_get(cursor, &k, &v, prefix.empty() ? MDB_FIRST : MDB_SET_RANGE);
  while (rc == 0 && to_view(k).starts_with(prefix)) {
    pages_touched_ += 8;
    matters_ = matters_ || env_->matters(table, to_view(k));
    rc = mdb_cursor_del(cursor, 0);
    if (rc == 0) rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  if (rc != 0 && rc != MDB_NOTFOUND) return error_from_lmdb(rc, "erase");
  return {};
}

Result<void> WriteTxn::clear(TableIndex table) {
  const int rc = mdb_drop(txn_, env_->table(table), 0);
  if (rc != 0) return error_from_lmdb(rc, "clear a table");
  return {};
}

Result<void> WriteTxn::commit() {
  if (matters_) VARVE_TRY(env_->complete(*this));
  if (seals_) VARVE_TRY(env_->texts()->reserve(*this));
  VARVE_TRY_ASSIGN(const auto before, file_length(env_->raw()));
  const auto enough = (before.pages + pages_touched_) * before.page_bytes;
  if (before.bytes < enough && ftruncate(before.fd, static_cast<off_t>(enough)) != 0) {
    return error_from_lmdb(errno, "lengthen the file");
  }
  errno = 0;
  int rc = mdb_txn_commit(std::exchange(txn_, nullptr));
  // LMDB also returns EIO for a short write, caused by a full disk, which sets no errno. The disk
  // may have room again before lacks_room() asks: XFS frees the blocks of removed files later.
  constexpr std::uint64_t kRoomBytes = 1U << 20;
  if (rc == EIO && (errno != EIO || io::lacks_room(before.fd, kRoomBytes))) rc = ENOSPC;
  if (rc != 0) return error_from_lmdb(rc, "commit");
  // The next writer cuts off the unused end of the file. The next write may be far away, and
  // programs that copy holes, or count the lengths of files, take the unused end for content.
  constexpr std::uint64_t kKeptBytes = 64U << 10;
  const auto after = file_length(env_->raw());
  if (after && after->bytes > after->pages * after->page_bytes + kKeptBytes) {
    static_cast<void>(WriteTxn::begin(*env_));
  }
  return {};
}

}  // namespace varve::meta

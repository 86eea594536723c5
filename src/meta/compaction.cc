// SPDX-License-Identifier: Apache-2.0
#include "meta/compaction.h"

#include <fmt/core.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "meta/key_renewal.h"
#include "meta/page_check.h"
#include "meta/page_format.h"
#include "meta/page_use.h"
#include "meta/stored_records.h"

namespace varve::meta {

namespace {

constexpr const char* kCopyName = "/data.mdb.tmp";
constexpr std::uint64_t kWorthBytes = 4U << 20;  // A smaller file is not worth a copy.
constexpr std::uint64_t kSpareBytes = 1U << 20;  // Stays free on the disk beside the copy.
constexpr std::uint64_t kBlockBytes = 512;       // Unit of st_blocks.

Error failed(int rc, const std::string& what) {
  const auto message = "compacting the catalog: " + what + ": " + mdb_strerror(rc);
  if (rc == ENOSPC || rc == EDQUOT || rc == EFBIG) {
    return {ErrorCode::kNoSpace, message + "; the catalog stays as it was"};
  }
  if (rc == EPERM || rc == EACCES) return {ErrorCode::kNotPermitted, message};
  return rc > 0 ? base::io_error("compacting the catalog: " + what, rc)
                : Error(ErrorCode::kCorrupt, message);
}

// Keeps other processes from opening the environment. Each process shares a lock of lock.mdb from
// before opening the reader table until after closing the table. An exclusive lock therefore proves
// that no other process uses the same table, nor another table in another mount namespace.
class Alone {
 public:
  static Result<Alone> begin(const ReaderTable* table) {
    if (table != nullptr) {
      auto alone = table->exclude_others();
      if (!alone) return std::move(alone).error().with_context("compacting the catalog");
      if (!*alone) {
        return Error(ErrorCode::kBusy,
                     "another process is reading the catalog, so it cannot be compacted now");
      }
    }
    return Alone(table);
  }
  Alone(Alone&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {}
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  Alone& operator=(Alone&&) = delete;
  ~Alone() {
    if (table_ != nullptr) table_->admit_others();
  }

 private:
  explicit Alone(const ReaderTable* table) : table_(table) {}
  const ReaderTable* table_;
};

// Removes the copy unless the copy has replaced the original.
class UnfinishedCopy {
 public:
  UnfinishedCopy(io::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  UnfinishedCopy(const UnfinishedCopy&) = delete;
  UnfinishedCopy& operator=(const UnfinishedCopy&) = delete;
  ~UnfinishedCopy() {
    if (!finished_) static_cast<void>(files_.remove(path_));
  }
  void finish() { finished_ = true; }

 private:
  io::FileSystem& files_;
  const std::string path_;
  bool finished_ = false;
};

// The file's owner keeps access, even if root compacts.
Result<void> take_owner_and_mode(int copy, int original) {
  struct stat of_copy {};
  struct stat wanted {};
  if (::fstat(copy, &of_copy) != 0 || ::fstat(original, &wanted) != 0) {
    return failed(errno, "examine");
  }
  const bool same_owner = of_copy.st_uid == wanted.st_uid && of_copy.st_gid == wanted.st_gid;
  if (!same_owner && ::fchown(copy, wanted.st_uid, wanted.st_gid) != 0) {
    return failed(errno, "give the copy the owner of the original");
  }
  if (::fchmod(copy, wanted.st_mode & 07777) != 0) return failed(errno, "set the mode of the copy");
  return {};
}

bool access_all(std::span<std::byte> page, const auto& access) {
  for (std::size_t done = 0; done < page.size();) {
    const ssize_t n = access(page.data() + done, page.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// LMDB numbers the commits of a copy from 1. The copy has the content of the original's last
// commit, so the copy gets the commit's number: notes and labels that name the commit stay valid,
// and the reader table, which also has the number, fits both files. The other meta page gets the
// same content as the commit before.
Result<void> number_commit(int fd, std::size_t page_bytes, std::uint64_t commit) {
  std::array<std::vector<std::byte>, kMetaPages> pages;
  std::array<Meta, kMetaPages> metas{};
  for (PageNumber number = 0; number < kMetaPages; ++number) {
    auto& page = pages[number];
    page.resize(page_bytes);
    const auto start = static_cast<off_t>(number * page_bytes);
    if (!access_all(page, [&](std::byte* to, std::size_t n, off_t at) {
          return ::pread(fd, to, n, start + at);
        })) {
      return failed(errno, "read the copy");
    }
    std::memcpy(&metas[number], page.data() + kPageHeader, sizeof(Meta));
  }
  const std::size_t newest = metas[0].commit > metas[1].commit ? 0 : 1;
  auto& page = pages[newest];
  auto& meta = metas[newest];
  // The lists of free pages name commits of the copy.
  if (meta.magic != kMagic || meta.commit < 1 || commit < 2 || commit < meta.commit) {
    return Error(ErrorCode::kCorrupt, "compacting the catalog: LMDB made an unknown kind of copy");
  }
  for (PageNumber number = 0; number < kMetaPages; ++number) {
    meta.commit = number == commit % kMetaPages ? commit : commit - 1;
    std::memcpy(page.data(), &number, sizeof number);
    std::memcpy(page.data() + kPageHeader, &meta, sizeof meta);
    const auto start = static_cast<off_t>(number * page_bytes);
    if (!access_all(page, [&](const std::byte* from, std::size_t n, off_t at) {
          return ::pwrite(fd, from, n, start + at);
        })) {
      return failed(errno, "number the copy's commit");
    }
  }
  return {};
}

bool same(const MDB_val& a, const MDB_val& b) {
  return a.mv_size == b.mv_size && std::memcmp(a.mv_data, b.mv_data, a.mv_size) == 0;
}

// Compares the entries of a table. A record of a named table differs, because the table's pages
// moved.
Result<void> compare_table(const Txn& original, MDB_dbi table, const Txn& copy, MDB_dbi its_table) {
  const Error differs(ErrorCode::kCorrupt, "compacting the catalog: the copy differs");
  MDB_cursor* a = nullptr;
  MDB_cursor* b = nullptr;
  int rc = mdb_cursor_open(original.raw(), table, &a);
  if (rc != 0) return failed(rc, "read");
  rc = mdb_cursor_open(copy.raw(), its_table, &b);
  if (rc != 0) {
    mdb_cursor_close(a);
    return failed(rc, "read the copy");
  }
  bool equal = true;
  while (equal) {
    MDB_val keys[2] = {};
    MDB_val values[2] = {};
    rc = mdb_cursor_get(a, &keys[0], &values[0], MDB_NEXT);
    equal = mdb_cursor_get(b, &keys[1], &values[1], MDB_NEXT) == rc;
    if (rc != 0 || !equal) break;
    equal = same(keys[0], keys[1]) && (table == kNamesTable || same(values[0], values[1]));
  }
  mdb_cursor_close(a);
  mdb_cursor_close(b);
  if (rc != 0 && rc != MDB_NOTFOUND) return failed(rc, "read");
  if (!equal) return differs;
  return {};
}

// Reads the whole copy, and compares the copy with the original.
Result<void> verify(const ReadTxn& original, EnvFiles copied, std::uint64_t bytes,
                    std::span<const char* const> tables, const DerivedTable* derived) {
  auto checked = check_pages(copied, tables);
  if (!checked) return std::move(checked).error().with_context("compacting the catalog: the copy");
  EnvOptions options;
  options.tables = tables;
  options.read_only = true;
  options.must_exist = true;
  options.map_bytes = bytes;
  options.keys = original.env().keys();  // So the copy has the salt, too.
  VARVE_TRY_ASSIGN(const auto env, Env::open(std::move(copied), options));
  VARVE_TRY_ASSIGN(const auto copy, ReadTxn::begin(env));
  if (copy.id() != original.id()) {
    return Error(ErrorCode::kCorrupt, "compacting the catalog: the copy has another commit");
  }
  if (derived != nullptr) return compare_records(original, copy, *derived);
  VARVE_TRY(compare_table(original, kNamesTable, copy, kNamesTable));
  for (TableIndex table = 0; table < tables.size(); ++table) {
    VARVE_TRY(compare_table(original, original.env().table(table), copy, env.table(table)));
  }
  return {};
}

// Copies all records to the empty file `copy`, sealed under a new key. Returns the page size in
// bytes.
Result<std::uint64_t> write_under_new_key(const ReadTxn& original, EnvFiles copy,
                                          std::span<const char* const> tables,
                                          const DerivedTable& derived) {
  MDB_envinfo info{};
  mdb_env_info(original.env().raw(), &info);
  EnvOptions options;
  options.tables = tables;
  options.map_bytes = info.me_mapsize;
  options.map_bytes_min = 2 * used_bytes(original.env()).bytes + kSpareBytes;
  options.keys = original.env().keys();
  VARVE_TRY_ASSIGN(const auto env, Env::open(std::move(copy), options));
  VARVE_TRY(copy_records(original, env, derived));
  return used_bytes(env).page_bytes;
}

// A head of an object store that names the last commit has the records under the old key. So the
// copy must have the number of a later commit, without any other change.
Result<void> commit_same_salt(const Env& env) {
  std::string salt;
  {
    VARVE_TRY_ASSIGN(const auto txn, ReadTxn::begin(env));
    VARVE_TRY_ASSIGN(const auto stored, find_stored(txn, kSealTable, kSaltKey));
    salt = stored.value_or("");
  }
  VARVE_TRY_ASSIGN(auto writer, StoredWriter::begin(env));
  VARVE_TRY(writer.put(kSealTable, {kSaltKey, salt}));
  return writer.commit();
}

// `derived` is null for a copy under the same key.
Result<CatalogCompaction> replace(const Env& env, io::FileSystem& files,
                                  std::span<const char* const> tables,
                                  const DerivedTable* derived) {
  const auto& directory = env.files().directory();
  const auto path = directory + kCopyName;
  VARVE_TRY_ASSIGN(const auto alone, Alone::begin(env.files().table()));
  VARVE_TRY(remove_unfinished_copy(files, directory));
  VARVE_TRY_ASSIGN(const auto use, page_use(env));
  VARVE_TRY_ASSIGN(const auto space, files.space(directory));
  const auto needed = use.used - use.free + kSpareBytes;
  const auto available = space.available_bytes();
  if (available < needed) {
    return Error(ErrorCode::kNoSpace,
                 fmt::format("compacting the catalog takes {} bytes for a while, but the disk has "
                             "only {}; the catalog stays as it was",
                             needed, available));
  }
  if (derived != nullptr) VARVE_TRY(commit_same_salt(env));
  // The environment does not change while its only writer runs replace().
  VARVE_TRY_ASSIGN(const auto original, ReadTxn::begin(env));
  VARVE_TRY_ASSIGN(auto created, files.descriptor(path, io::OpenMode::kCreateNew));
  const auto copy = EnvFiles::of_data(directory, std::move(created));
  const int fd = copy.data();
  UnfinishedCopy unfinished(files, path);
  VARVE_TRY(take_owner_and_mode(fd, env.files().data()));
  auto page_bytes = used_bytes(env).page_bytes;
  if (derived != nullptr) {
    VARVE_TRY_ASSIGN(page_bytes, write_under_new_key(original, copy, tables, *derived));
  } else if (const int rc = mdb_env_copyfd2(env.raw(), fd, MDB_CP_COMPACT); rc != 0) {
    return failed(rc, "copy");
  }
  VARVE_TRY(number_commit(fd, page_bytes, original.id()));
  if (::fsync(fd) != 0) return failed(errno, "sync the copy");
  struct stat after {};
  struct stat before {};
  if (::fstat(fd, &after) != 0 || ::fstat(env.files().data(), &before) != 0) {
    return failed(errno, "examine");
  }
  CatalogCompaction done;
  done.bytes_before = static_cast<std::uint64_t>(before.st_size);
  done.bytes_after = static_cast<std::uint64_t>(after.st_size);
  VARVE_TRY(verify(original, copy, done.bytes_after, tables, derived));
  VARVE_TRY(files.rename(path, directory + "/data.mdb"));
  unfinished.finish();
  VARVE_TRY(files.sync_directory(directory));
  return done;
}

}  // namespace

Result<bool> wastes_space(const Env& env) {
  VARVE_TRY_ASSIGN(const auto use, page_use(env));
  if (use.used < kWorthBytes) return false;
  if (use.free > use.used / 2) return true;
  struct stat file {};
  if (::fstat(env.files().data(), &file) != 0) return failed(errno, "examine");
  const auto blocks = static_cast<std::uint64_t>(file.st_blocks) * kBlockBytes;
  return static_cast<std::uint64_t>(file.st_size) > blocks + blocks / 2;
}

Result<CatalogCompaction> compact(const Env& env, io::FileSystem& files,
                                  std::span<const char* const> tables) {
  return replace(env, files, tables, nullptr);
}

Result<CatalogCompaction> renew_key(const Env& env, io::FileSystem& files,
                                    std::span<const char* const> tables,
                                    const DerivedTable& derived) {
  return replace(env, files, tables, &derived);
}

Result<void> remove_unfinished_copy(io::FileSystem& files, const std::string& directory) {
  const auto path = directory + kCopyName;
  VARVE_TRY_ASSIGN(const bool present, files.exists(path));
  if (!present) return {};
  return files.remove(path);
}

}  // namespace varve::meta

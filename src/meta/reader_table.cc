// SPDX-License-Identifier: Apache-2.0
#include "meta/reader_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/system_error.h"

namespace varve::meta {

namespace {

// Space for about 1,100 readers, as mdb_env_set_maxreaders() asks for.
constexpr std::uint64_t kTableBytes = 72U << 10;

struct Range {
  off_t start = 0;
  off_t length = 0;  // 0: to the end.
};
constexpr off_t kMarks = off_t{1} << 32;
constexpr Range kAll{0, 0};
constexpr Range kFirstByte{0, 1};
constexpr Range kProcesses{1, kMarks - 1};
constexpr Range kUserByte{off_t{1} << 40, 1};

struct flock lock_of(short type, Range range) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = range.start;
  lock.l_len = range.length;
  return lock;
}

// Sets or releases a lock of the open file. Returns the errno, 0 for success.
int set_lock(int file, short type, Range range, bool waits = false) {
  auto lock = lock_of(type, range);
  while (::fcntl(file, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool is_taken(int errno_value) { return errno_value == EAGAIN || errno_value == EACCES; }

Error cannot_lock(int errno_value) { return base::io_error("cannot lock lock.mdb", errno_value); }

// Returns the type of another open file's lock in `range`; F_UNLCK without such a lock.
Result<short> other_lock(int file, Range range) {
  auto lock = lock_of(F_WRLCK, range);
  if (::fcntl(file, F_OFD_GETLK, &lock) != 0) return cannot_lock(errno);
  return static_cast<short>(lock.l_type);
}

// Returns the ranges of lock.mdb never locked by users of the table with `mark`.
std::array<Range, 3> foreign(off_t mark) {
  return {Range{0, 1}, Range{kMarks, mark}, Range{kMarks + mark + 1, 0}};
}

// Returns whether a user of another table has a lock. While the calling process has no lock, an
// exclusive lock may belong to a compaction.
Result<bool> has_foreign_users(int lock, off_t mark, bool may_compact) {
  for (const auto& range : foreign(mark)) {
    VARVE_TRY_ASSIGN(const auto type, other_lock(lock, range));
    if (type == F_RDLCK || (type == F_WRLCK && !may_compact)) return true;
  }
  return false;
}

std::string boot_id() {
  std::string id(64, '\0');
  const base::UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const auto bytes = file.valid() ? ::read(file.get(), id.data(), id.size()) : 0;
  id.resize(static_cast<std::size_t>(bytes > 0 ? bytes : 0));
  return id;
}

// Returns a number from 1 that is unique to the table, also among the tables of all machines that
// share the repository's disk.
Result<off_t> mark_of(int table) {
  struct stat status {};
  if (::fstat(table, &status) != 0) return base::io_error("cannot examine a file in memory", errno);
  const auto text = fmt::format("{}/{}/{}", boot_id(), status.st_dev, status.st_ino);
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 60) - 1;
  return static_cast<off_t>((XXH3_64bits(text.data(), text.size()) & kLargest) + 1);
}

// Returns a separate open file of lock.mdb.
Result<base::UniqueFd> open_again(int lock) {
  const int flags = ::fcntl(lock, F_GETFL);
  const int mode = flags < 0 ? O_RDONLY : flags & O_ACCMODE;
  base::UniqueFd own(
      ::open(fmt::format("/proc/self/fd/{}", lock).c_str(), mode | O_CLOEXEC | O_NONBLOCK));
  if (!own.valid()) return base::io_error("cannot open lock.mdb again", errno);
  return own;
}

// Opens the shared table, and locks the table's name. Another process may remove the name before
// the lock.
Result<SharedFile> open_table(const std::vector<MemoryPlace>& places, uid_t owner,
                              const std::string& name) {
  constexpr int kTriesMax = 100;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    VARVE_TRY_ASSIGN(auto table, SharedFile::open(places, owner, name, kTableBytes));
    const int failure = set_lock(table.descriptor(), F_RDLCK, kUserByte, true);
    if (failure != 0) return cannot_lock(failure);
    if (table.has_its_name()) return table;
  }
  return Error(ErrorCode::kUnsupported, "the shared memory is removed again and again");
}

// Shares the table's part of lock.mdb. Returns false if another table is in use.
Result<bool> share_mark(int lock, off_t mark) {
  // Checks first, so that the lock does not mislead the users of the other table.
  VARVE_TRY_ASSIGN(bool is_foreign, has_foreign_users(lock, mark, true));
  if (is_foreign) return false;
  for (const auto& range : {kProcesses, Range{kMarks + mark, 1}}) {
    const int failure = set_lock(lock, F_RDLCK, range, true);
    if (failure != 0) return cannot_lock(failure);
  }
  VARVE_TRY_ASSIGN(is_foreign, has_foreign_users(lock, mark, false));
  if (is_foreign) static_cast<void>(set_lock(lock, F_UNLCK, kAll));
  return !is_foreign;
}

}  // namespace

Result<ReaderTable> ReaderTable::open(int lock, uid_t owner) {
  return open(lock, owner, memory_places(owner));
}

Result<ReaderTable> ReaderTable::open(int lock, uid_t owner,
                                      const std::vector<MemoryPlace>& places) {
  struct stat status {};
  if (::fstat(lock, &status) != 0) return base::io_error("cannot examine lock.mdb", errno);
  VARVE_TRY_ASSIGN(auto own, open_again(lock));
  const auto name = fmt::format("{:x}-{:x}", status.st_dev, status.st_ino);
  auto table = open_table(places, owner, name);
  std::string why =
      "has another /dev/shm, as in another container, or lost its files there at a log-out";
  if (!table) {
    if (table.error().code() != ErrorCode::kUnsupported) return std::move(table).error();
    why = "cannot share memory with this one (" + table.error().message() + ")";
    table = SharedFile::make_private(kTableBytes);
    if (!table) return std::move(table).error();
  }
  VARVE_TRY_ASSIGN(const auto mark, mark_of(table->descriptor()));
  ReaderTable joined(std::move(own), *std::move(table), mark);
  // Two processes with different tables may both have found a lock of the other process.
  constexpr int kTriesMax = 5;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    VARVE_TRY_ASSIGN(const bool shared, share_mark(joined.lock_.get(), mark));
    if (shared) return joined;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + (::getpid() + tries) % 10));
  }
  return Error(ErrorCode::kLocked,
               "a process uses the repository that " + why +
                   ": wait until that process has ended, or let both processes share /dev/shm");
}

ReaderTable::~ReaderTable() {
  if (!lock_.valid()) return;
  // In this order: a later user of the same lock.mdb, or of another file with the same inode
  // number, finds no foreign mark, and lets LMDB initialise the remaining table.
  static_cast<void>(set_lock(descriptor(), F_UNLCK, kFirstByte));
  static_cast<void>(
      set_lock(lock_.get(), F_UNLCK, kAll));  // Explicitly: a child may still have the file open.
  if (!table_.is_private() && set_lock(descriptor(), F_WRLCK, kUserByte) == 0) {
    table_.remove_name();
  }
}

void ReaderTable::keep_initialised() const {
  static_cast<void>(set_lock(descriptor(), F_RDLCK, kFirstByte));
}

void ReaderTable::register_process() const {
  auto lock = lock_of(F_WRLCK, {::getpid(), 1});
  static_cast<void>(::fcntl(descriptor(), F_SETLK, &lock));
}

Result<bool> ReaderTable::exclude_others() const {
  const int failure = set_lock(lock_.get(), F_WRLCK, kAll);
  if (failure == 0) return true;
  if (is_taken(failure)) return false;
  return cannot_lock(failure);
}

void ReaderTable::admit_others() const {
  for (const auto& range : foreign(mark_)) {
    static_cast<void>(set_lock(lock_.get(), F_UNLCK, range));
  }
  static_cast<void>(set_lock(lock_.get(), F_RDLCK, {kMarks + mark_, 1}));
  // Last, because waiting processes wait for kProcesses.
  static_cast<void>(set_lock(lock_.get(), F_RDLCK, kProcesses));
}

std::vector<ReaderTable::Name> ReaderTable::names_beside() const {
  std::vector<Name> names;
  if (table_.is_private()) return names;
  const int listed = ::openat(table_.folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = listed < 0 ? nullptr : ::fdopendir(listed);
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    struct stat status {};
    if (name.find_first_not_of("0123456789abcdef-") != std::string_view::npos ||
        name == table_.name() ||
        ::fstatat(table_.folder(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode)) {
      continue;
    }
    names.push_back({std::string(name), status.st_ino});
  }
  ::closedir(folder);
  return names;
}

void ReaderTable::remove_if_unused(const Name& name) const {
  const base::UniqueFd file(::openat(table_.folder(), name.name.c_str(),
                                     O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() || set_lock(file.get(), F_WRLCK, kUserByte) != 0) return;
  struct stat opened {};
  struct stat named {};
  if (::fstat(file.get(), &opened) == 0 && opened.st_ino == name.inode &&
      ::fstatat(table_.folder(), name.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      named.st_ino == opened.st_ino) {
    ::unlinkat(table_.folder(), name.name.c_str(), 0);
  }
}

}  // namespace varve::meta

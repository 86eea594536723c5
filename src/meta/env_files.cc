// SPDX-License-Identifier: Apache-2.0
#include "meta/env_files.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "meta/lmdb.h"

namespace varve::meta {

namespace {

constexpr const char* kDataName = "/data.mdb";
constexpr const char* kLockName = "/lock.mdb";

// Returns whether a folder made in `folder` is safe from replacement by other users.
bool is_safe(const char* folder) {
  struct stat status {};
  if (::stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  const bool is_ours = status.st_uid == 0 || status.st_uid == ::geteuid();
  const bool is_open = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return is_ours && (!is_open || (status.st_mode & S_ISVTX) != 0);
}

// Memory comes before disks: each opening makes a folder and removes it again. In many containers
// and virtual machines, /run is on a disk.
std::vector<std::string> temporary_folders() {
  std::vector<std::string> all;
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (const char* value = ::secure_getenv(variable); value != nullptr) all.emplace_back(value);
  }
  all.insert(all.end(), {"/dev/shm", "/run", "/tmp", "/var/tmp"});
  return all;
}

Error locked_by_writer(const std::string& directory, uid_t owner) {
  return {ErrorCode::kLocked,
          fmt::format("{} belongs to user {}, and a process is writing to it now. Another user can "
                      "read it only while nothing is written: run the command as that user "
                      "(`sudo -u '#{}' varve …`), or wait until the writer has ended",
                      directory, owner, owner)};
}

// Returns the descriptor of lock.mdb, or nullopt for a reader that cannot open lock.mdb: on
// read-only media, or on a full disk without the file.
Result<std::optional<base::UniqueFd>> open_lock(io::FileSystem& files, const std::string& path,
                                                bool read_only) {
  auto lock = files.descriptor(path, io::OpenMode::kReadWrite);
  if (lock) return std::optional(*std::move(lock));
  const bool is_refused = base::refuses_writing(lock.error());
  if (!read_only || (!is_refused && lock.error().code() != ErrorCode::kNoSpace)) {
    return std::move(lock).error();
  }
  // The disk may be read-only at the present mount and have a writer elsewhere, such as at another
  // mount.
  if (is_refused) lock = files.descriptor(path, io::OpenMode::kRead);
  if (lock) return std::optional(*std::move(lock));
  return std::optional<base::UniqueFd>();
}

// Keeps writers out. `refused` is the error while a writer is active.
Result<std::unique_ptr<io::FileLock>> keep_writers_out(io::FileSystem& files,
                                                       const EnvOptions& options,
                                                       const Error& refused) {
  if (options.writer_lock.empty()) return std::unique_ptr<io::FileLock>();
  auto shared = files.lock_shared(options.writer_lock);
  if (shared) return shared;
  if (shared.error().code() == ErrorCode::kLocked) return refused;
  if (shared.error().code() != ErrorCode::kNotFound) return std::move(shared).error();
  return std::unique_ptr<io::FileLock>();
}

}  // namespace

Result<EnvFiles> EnvFiles::open(io::FileSystem& files, const std::string& directory,
                                const EnvOptions& options) {
  VARVE_TRY(check_system());
  constexpr int kRoundsMax = 100;
  for (int round = 0; round < kRoundsMax; ++round) {
    VARVE_TRY_ASSIGN(auto opened, open_once(files, directory, options));
    // A compaction may have ended after data.mdb was opened.
    VARVE_TRY_ASSIGN(const bool current, opened.are_current(files));
    if (current) return opened;
  }
  return Error(ErrorCode::kBusy, directory + " is replaced again and again");
}

Result<EnvFiles> EnvFiles::open_once(io::FileSystem& files, const std::string& directory,
                                     const EnvOptions& options) {
  auto open = std::make_shared<Open>();
  open->directory = directory;
  const bool is_made = !options.read_only && !options.must_exist;
  if (!is_made) {
    VARVE_TRY_ASSIGN(const bool present, files.exists(directory + kDataName));
    if (!present) {
      return Error(ErrorCode::kIo, directory + kDataName + " is missing");
    }
  }
  const auto mode = options.read_only ? io::OpenMode::kRead : io::OpenMode::kReadWrite;
  VARVE_TRY_ASSIGN(open->data, files.descriptor(directory + kDataName, mode));
  struct stat status {};
  if (::fstat(open->data.get(), &status) != 0) {
    return io::error_from_errno(errno, "cannot examine " + directory + kDataName);
  }
  constexpr off_t kTwoMetaPages = 8192;
  if (options.must_exist && status.st_size < kTwoMetaPages) return truncated(directory);
  if (options.read_only && status.st_uid != ::geteuid()) {
    VARVE_TRY_ASSIGN(open->writer_lock,
                     keep_writers_out(files, options, locked_by_writer(directory, status.st_uid)));
    return EnvFiles(std::move(open));
  }
  VARVE_TRY_ASSIGN(const auto lock, open_lock(files, directory + kLockName, options.read_only));
  if (lock) {
    auto use = OpenEnvs::of_process().use(lock->get(), status.st_uid);
    if (use) {
      open->use.emplace(*std::move(use));
      return EnvFiles(std::move(open));
    }
    auto failure = std::move(use).error().with_context(directory);
    if (!options.read_only || failure.code() != ErrorCode::kLocked) return failure;
    VARVE_TRY_ASSIGN(open->writer_lock, keep_writers_out(files, options, failure));
    return EnvFiles(std::move(open));
  }
  const Error has_writer(ErrorCode::kLocked,
                         directory +
                             " has no lock.mdb, and a process is writing to it now: wait "
                             "until the writer has ended");
  VARVE_TRY_ASSIGN(open->writer_lock, keep_writers_out(files, options, has_writer));
  return EnvFiles(std::move(open));
}

EnvFiles EnvFiles::of_data(const std::string& directory, base::UniqueFd data) {
  auto open = std::make_shared<Open>();
  open->directory = directory;
  open->data = std::move(data);
  return EnvFiles(std::move(open));
}

Result<bool> EnvFiles::are_current(io::FileSystem& files) const {
  VARVE_TRY_ASSIGN(const auto named,
                   files.descriptor(directory() + kDataName, io::OpenMode::kRead));
  struct stat now {};
  struct stat opened {};
  if (::fstat(named.get(), &now) != 0 || ::fstat(data(), &opened) != 0) {
    return io::error_from_errno(errno, "cannot examine " + directory() + kDataName);
  }
  return now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
}

Result<void> check_system() {
  if (::access("/proc/self/fd", X_OK) == 0) return {};
  return Error(ErrorCode::kUnsupported,
               "/proc is missing here, and Varve opens its catalog by it; mount it, such as by "
               "`mount -t proc proc /proc`");
}

Result<EnvNames> EnvNames::make(const EnvFiles& files) {
  VARVE_TRY(check_system());
  EnvNames names;
  for (const auto& parent : temporary_folders()) {
    std::string folder = parent + "/varve-XXXXXX";
    if (!is_safe(parent.c_str()) || ::mkdtemp(folder.data()) == nullptr) continue;
    names.folder_ = std::move(folder);
    const auto link = [&](int fd, const char* name) {
      return fd < 0 || ::symlink(fmt::format("/proc/self/fd/{}", fd).c_str(),
                                 (names.folder_ + name).c_str()) == 0;
    };
    const int table = files.table() != nullptr ? files.table()->descriptor() : -1;
    if (link(files.data(), kDataName) && link(table, kLockName)) return names;
    names.remove();  // The folder's disk may be full.
  }
  return Error(ErrorCode::kIo,
               "cannot create a folder for temporary names: set TMPDIR to a folder that only you "
               "can write to, on a disk with free space");
}

EnvNames::~EnvNames() { remove(); }

void EnvNames::remove() {
  if (folder_.empty()) return;
  ::unlink((folder_ + kDataName).c_str());
  ::unlink((folder_ + kLockName).c_str());
  ::rmdir(folder_.c_str());
  folder_.clear();
}

}  // namespace varve::meta

// SPDX-License-Identifier: Apache-2.0
#include "meta/env_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "meta/lmdb.h"

namespace varve::meta {

namespace {

constexpr const char* kDataName = "/data.mdb";
constexpr const char* kLockName = "/lock.mdb";

// Returns whether other users cannot exchange a folder that is made in `folder`.
bool is_safe(const char* folder) {
  struct stat status {};
  if (::stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  const bool is_ours = status.st_uid == 0 || status.st_uid == ::geteuid();
  const bool is_open = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return is_ours && (!is_open || (status.st_mode & S_ISVTX) != 0);
}

std::vector<std::string> temporary_folders() {
  std::vector<std::string> all;
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    if (const char* value = ::secure_getenv(variable); value != nullptr) all.emplace_back(value);
  }
  all.insert(all.end(), {"/run", "/tmp", "/var/tmp", "/dev/shm"});
  return all;
}

Error locked_by_writer(const std::string& directory, uid_t owner) {
  return {ErrorCode::kLocked,
          fmt::format("{} belongs to user {}, and a process is writing to it now. Another user can "
                      "read it only while nothing is written: run the command as that user "
                      "(`sudo -u '#{}' varve …`), or wait until the writer has ended",
                      directory, owner, owner)};
}

}  // namespace

Result<EnvFiles> EnvFiles::open(io::FileSystem& files, const std::string& directory,
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
    if (!options.writer_lock.empty()) {
      auto shared = files.lock_shared(options.writer_lock);
      if (shared) {
        open->writer_lock = std::move(*shared);
      } else if (shared.error().code() == ErrorCode::kLocked) {
        return locked_by_writer(directory, status.st_uid);
      } else if (shared.error().code() != ErrorCode::kNotFound) {
        return std::move(shared).error();
      }
    }
    return EnvFiles(std::move(open));
  }
  auto lock = files.descriptor(directory + kLockName, io::OpenMode::kReadWrite);
  if (lock) {
    open->lock = std::move(*lock);
  } else {
    // Read-only media have no writer, so LMDB needs no reader table.
    if (!options.read_only || !base::refuses_writing(lock.error())) {
      return std::move(lock).error();
    }
  }
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
    if (link(files.data(), kDataName) && link(files.lock(), kLockName)) return names;
    return io::error_from_errno(errno, "cannot create links in " + names.folder_);
  }
  return Error(ErrorCode::kIo,
               "cannot create a folder for temporary names: set TMPDIR to a folder that only you "
               "can write to");
}

EnvNames::~EnvNames() {
  if (folder_.empty()) return;
  ::unlink((folder_ + kDataName).c_str());
  ::unlink((folder_ + kLockName).c_str());
  ::rmdir(folder_.c_str());
}

}  // namespace varve::meta

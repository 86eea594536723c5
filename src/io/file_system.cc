// SPDX-License-Identifier: Apache-2.0
#include "io/file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/coding.h"
#include "base/system_error.h"

namespace varve::io {

namespace {
// Returns advice to the user, or "" if there is none.
const char* advice(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "; free some space on that disk and try again";
    case EDQUOT:
      return "; free some space or get a larger quota, then try again";
    case EACCES:
    case EPERM:
      return "; check the owner and the permissions, or run as the repository's owner";
    case EROFS:
      return "; remount it read-write, or open the repository read-only";
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    case EIO:
      return "; the device may be failing: see the kernel's log";
    default:
      return "";
  }
}
}  // namespace

Error error_from_errno(int errno_value, const std::string& what) {
  return base::system_error(what, errno_value).with_more(advice(errno_value));
}

Result<std::unique_ptr<FileLock>> FileSystem::lock_shared(const std::string& path) {
  return Error(ErrorCode::kUnsupported, path + ": this file system has no shared locks");
}

Result<base::UniqueFd> FileSystem::descriptor(const std::string& path, OpenMode /*mode*/) {
  return Error(ErrorCode::kUnsupported, path + " is not in a file system of the kernel");
}

Result<std::string> read_despite_damage(File& file, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  const auto out = std::as_writable_bytes(std::span(text));
  const auto whole = file.read_at(offset, out);
  if (whole) {
    text.resize(*whole);
    return text;
  }
  if (whole.error().code() != ErrorCode::kCorrupt) return whole.error();
  const auto unit = file.append_unit();
  for (std::size_t at = 0; at < bytes;) {
    const auto step = std::min<std::uint64_t>(bytes - at, unit - (offset + at) % unit);
    const auto part = out.subspan(at, static_cast<std::size_t>(step));
    const auto got = file.read_at(offset + at, part);
    if (!got && got.error().code() != ErrorCode::kCorrupt) return got.error();
    if (!got) std::fill(part.begin(), part.end(), std::byte{0});
    at += part.size();
  }
  return text;
}

Result<std::string> FileSystem::read_file(const std::string& path, std::size_t bytes_max) {
  VARVE_TRY_ASSIGN(auto file, open(path, OpenMode::kRead));
  VARVE_TRY_ASSIGN(const std::uint64_t size, file->size());
  if (size > bytes_max) {
    return Error(ErrorCode::kTooLarge, path + " has " + std::to_string(size) +
                                           " bytes, more than the " + std::to_string(bytes_max) +
                                           " that such a file may have");
  }
  std::string text(size, '\0');
  VARVE_TRY_ASSIGN(const std::size_t n,
                   file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  text.resize(n);
  return text;
}

Result<void> FileSystem::make_durable_directory(const std::string& path) {
  VARVE_TRY(make_directory(path));
  // Syncs an existing directory, too: the process that created it may have crashed before the sync.
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return sync_directory(".");
  return sync_directory(slash == 0 ? "/" : path.substr(0, slash));
}

Result<void> FileSystem::write_file_atomically(const std::string& directory,
                                               const std::string& name,
                                               std::span<const std::byte> data) {
  const std::string path = directory + "/" + name;
  const std::string temporary = path + ".tmp";
  const auto write = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto file, open(temporary, OpenMode::kReadWrite));
    // A crash may have left an older, longer file.
    VARVE_TRY(file->truncate(0));
    VARVE_TRY(file->write_at(0, data));
    return file->sync();
  };
  if (auto written = write(); !written) {
    // Reports the first error. The next attempt overwrites a leftover.
    static_cast<void>(remove(temporary));
    return written;
  }
  VARVE_TRY(rename(temporary, path));
  return sync_directory(directory);
}

}  // namespace varve::io

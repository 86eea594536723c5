// SPDX-License-Identifier: Apache-2.0
#include "transfer/target_entry.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/source_listing.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

constexpr std::uint64_t kCompareBytes = 1U << 20;

int open_resolved(int directory_fd, const char* name, int flags, std::uint64_t resolve) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = resolve;
  const long fd = ::syscall(SYS_openat2, directory_fd, name, &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) return static_cast<int>(fd);
  // Before Linux 5.6. All names here are single components, for which O_NOFOLLOW has the same
  // effect.
  return ::openat(directory_fd, name, flags | O_NOFOLLOW);
}

}  // namespace

int open_beneath(int directory_fd, const char* name, int flags) {
  return open_resolved(directory_fd, name, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

Result<std::optional<struct stat>> stat_entry(int directory_fd, const std::string& name) {
  struct stat status {};
  if (::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return std::optional<struct stat>(status);
  }
  if (errno == ENOENT) return std::optional<struct stat>();
  return system_error("stat", errno);
}

Result<bool> same_content(FileReader& source, int fd, std::uint64_t begin, std::uint64_t end,
                          const std::function<bool(std::uint64_t)>& advance) {
  const auto size = static_cast<std::size_t>(std::min(kCompareBytes, end - begin));
  const auto ours = std::make_unique_for_overwrite<std::byte[]>(size);
  const auto theirs = std::make_unique_for_overwrite<std::byte[]>(size);
  for (std::uint64_t at = begin; at < end;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, end - at));
    const auto got = source.read(at, {ours.get(), n});
    if (!got || *got != n) return false;
    for (std::size_t have = 0; have < n;) {
      const ssize_t more =
          ::pread(fd, theirs.get() + have, n - have, static_cast<off_t>(at + have));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) return false;
      have += static_cast<std::size_t>(more);
    }
    if (std::memcmp(ours.get(), theirs.get(), n) != 0) return false;
    if (!advance(n)) return Error(ErrorCode::kInterrupted, "interrupted");
    at += n;
  }
  return true;
}

void remove_entry(int directory_fd, const std::string& name, const std::string& path,
                  ProblemList& problems, const std::function<void(const std::string&)>& removed) {
  struct Level {
    std::vector<std::string> names;
    std::string name;
    std::size_t path_bytes = 0;
  };
  const auto unlink_one = [&](int fd, const std::string& one, int flags, const std::string& at) {
    if (::unlinkat(fd, one.c_str(), flags) == 0) {
      removed(at);
    } else if (errno != ENOENT) {
      problems.add(at, "not removed: " + errno_text(errno));
    }
  };
  std::string at = path;
  DirectoryStack stack;
  std::vector<Level> levels;
  // Opens a directory to empty it. Returns false if the entry is not a directory or cannot be
  // opened.
  const auto enter = [&](int fd, const std::string& one, std::size_t path_bytes) {
    struct stat status {};
    if (::fstatat(fd, one.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (!S_ISDIR(status.st_mode)) {
      unlink_one(fd, one, 0, at);
      return false;
    }
    base::UniqueFd opened(open_resolved(fd, one.c_str(), kDirectoryFlags,
                                        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV));
    if (!opened.valid()) {
      problems.add(at, errno == EXDEV ? "not removed: it is a mount point"
                                      : "not removed: " + errno_text(errno));
      return false;
    }
    auto names = list_names(opened.get());
    if (!names || !stack.push(std::move(opened))) return false;
    levels.push_back(Level{std::move(*names), one, path_bytes});
    return true;
  };
  (void)enter(directory_fd, name, at.size());
  while (!levels.empty()) {
    Level& level = levels.back();
    if (!level.names.empty()) {
      const std::string next = std::move(level.names.back());
      level.names.pop_back();
      const std::size_t path_bytes = at.size();
      at += "/" + next;
      if (!enter(stack.top(), next, path_bytes)) at.resize(path_bytes);
      continue;
    }
    const std::string emptied = level.name;
    const std::size_t path_bytes = level.path_bytes;
    if (!stack.pop()) return;
    levels.pop_back();
    unlink_one(levels.empty() ? directory_fd : stack.top(), emptied, AT_REMOVEDIR, at);
    at.resize(path_bytes);
  }
}

}  // namespace varve::transfer

// SPDX-License-Identifier: Apache-2.0
#include "control/lock_holder.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text_of_file.h"

namespace varve::control {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCommandBytesMax = 100;

/// Returns whether the process has the file open.
bool has_open(pid_t process, const struct stat& file) {
  std::error_code failed;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), failed), end;
       !failed && at != end; at.increment(failed)) {
    struct stat open {};
    if (::stat(at->path().c_str(), &open) == 0 && open.st_dev == file.st_dev &&
        open.st_ino == file.st_ino) {
      return true;
    }
  }
  return false;
}

/// Returns the command line of the process without the folder of the program; "" if hidden.
std::string command_of(pid_t process) {
  std::string words = base::text_of_file(fmt::format("/proc/{}/cmdline", process));
  while (words.ends_with('\0')) words.pop_back();
  const std::size_t program_end = std::min(words.find('\0'), words.size());
  const std::size_t folder_end = words.rfind('/', program_end);
  if (folder_end != std::string::npos) words.erase(0, folder_end + 1);
  const bool is_long = words.size() > kCommandBytesMax;
  if (is_long) words.resize(kCommandBytesMax);
  // The words may hold any byte, and the text goes to a terminal.
  for (char& byte : words) {
    const auto value = static_cast<unsigned char>(byte);
    if (value == 0) byte = ' ';
    if (value != 0 && (value < 0x20 || value >= 0x7F)) byte = '?';
  }
  return is_long ? words + "…" : words;
}

}  // namespace

std::vector<ListedLock> parse_locks(std::string_view text) {
  std::vector<ListedLock> locks;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    ListedLock lock;
    unsigned long inode = 0;
    int process = 0;
    // A process that waits has "->" in front of "FLOCK".
    if (std::sscanf(line.c_str(), "%*u: FLOCK %*s WRITE %d %x:%x:%lu", &process, &lock.device_major,
                    &lock.device_minor, &inode) != 4) {
      continue;
    }
    lock.process = process;
    lock.inode = inode;
    if (process > 0) locks.push_back(lock);
  }
  return locks;
}

std::string holder_of_lock(const std::string& path) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return {};
  for (const ListedLock& lock : parse_locks(base::text_of_file("/proc/locks"))) {
    if (lock.inode != file.st_ino) continue;
    // The table has the device of the file system, and stat(2) of Btrfs that of the subvolume.
    const bool is_same_device = lock.device_major == gnu_dev_major(file.st_dev) &&
                                lock.device_minor == gnu_dev_minor(file.st_dev);
    if (!is_same_device && !has_open(lock.process, file)) continue;
    const std::string command = command_of(lock.process);
    return command.empty() ? fmt::format("process {}", lock.process)
                           : fmt::format("process {} ({})", lock.process, command);
  }
  return {};
}

}  // namespace varve::control

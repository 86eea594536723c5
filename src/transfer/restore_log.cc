// SPDX-License-Identifier: Apache-2.0
#include "transfer/restore_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "transfer/file_sink.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

constexpr std::string_view kLogMagic = "varve restore log 1";
constexpr std::size_t kTokenDigits = 16;
// A point takes up to 60 bytes. A log of more than kLogBytes is shortened.
constexpr std::size_t kLogBytes = 1U << 20;
// A longer file is not a log of Varve.
constexpr off_t kLogBytesMax = 64 << 20;

// Begins the line of a directory in which the restore makes a repository. Only a hostile version
// has many repositories.
constexpr std::string_view kRepositoryWord = "repository";
constexpr std::size_t kRepositoriesMax = 1000;

/// Fowler-Noll-Vo 1a with 64 bits. The checksum only has to detect torn lines.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

std::string line_of(std::string_view payload) {
  return fmt::format("{} #{:016x}\n", payload, checksum(payload));
}

/// Takes the next line. Returns nullopt if the line is torn or altered.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos || end < 18) return std::nullopt;
  const std::string_view payload = rest.substr(0, end - 18);
  if (rest.substr(0, end + 1) != line_of(payload)) return std::nullopt;
  rest.remove_prefix(end + 1);
  return payload;
}

template <typename Int>
bool take_number(std::string_view& text, Int& value) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string repository_line(Rank rank, ino_t inode) {
  return fmt::format("{} {} {}", kRepositoryWord, rank, inode);
}

std::string new_token() {
  std::uint64_t random = 0;
  // The process id is enough without random numbers, because the name only has to be unused.
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) {
    random = static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("{:016x}", random);
}

}  // namespace

RestoreLog::RestoreLog(int directory_fd, std::string name, std::string identity)
    : directory_fd_(directory_fd), name_(std::move(name)), identity_(std::move(identity)) {
  if (directory_fd_ >= 0) read();
  if (!resumes_) token_ = new_token();
}

void RestoreLog::read() {
  base::UniqueFd fd(::openat(directory_fd_, name_.c_str(),
                             O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return;
  const bool is_ours = S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
                       (status.st_mode & 022) == 0 && status.st_nlink == 1;
  if (!is_ours || status.st_size > kLogBytesMax) return;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (::pread(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return;
  std::string_view rest = text;
  if (take_line(rest) != kLogMagic) return;
  stale_ = true;
  if (take_line(rest) != identity_) return;
  const auto first_line = take_line(rest);
  if (!first_line || first_line->size() <= kTokenDigits) return;
  token_ = first_line->substr(0, kTokenDigits);
  if (token_.find_first_not_of("0123456789abcdef") != std::string::npos) return;
  std::string_view started = first_line->substr(kTokenDigits);
  if (!take_number(started, started_at_)) return;
  while (const auto line = take_line(rest)) {
    std::string_view numbers = *line;
    if (numbers.starts_with(kRepositoryWord)) {
      numbers.remove_prefix(kRepositoryWord.size());
      std::pair<Rank, ino_t> noted;
      if (!take_number(numbers, noted.first) || !take_number(numbers, noted.second)) break;
      if (repositories_.size() < kRepositoriesMax) repositories_.push_back(noted);
      continue;
    }
    RestorePoint point;
    if (!take_number(numbers, point.rank) || !take_number(numbers, point.offset)) break;
    before_last_ = std::exchange(last_, point);
  }
  newest_ = {before_last_, last_};
  // Cuts off a torn line, so the next line follows a complete line.
  if (::ftruncate(fd.get(), static_cast<off_t>(text.size() - rest.size())) != 0) return;
  bytes_ = text.size() - rest.size();
  fd_ = std::move(fd);
  resumes_ = true;
}

/// Returns the lines before the points.
std::string RestoreLog::head() const {
  std::string text =
      line_of(kLogMagic) + line_of(identity_) + line_of(fmt::format("{} {}", token_, started_at_));
  for (const auto& [rank, inode] : repositories_) text += line_of(repository_line(rank, inode));
  return text;
}

Result<void> RestoreLog::note_repository(Rank rank, ino_t inode) {
  VARVE_TRY(start());
  if (made_repository(rank, inode) || repositories_.size() >= kRepositoriesMax) return {};
  VARVE_TRY(append(repository_line(rank, inode)));
  repositories_.emplace_back(rank, inode);
  return {};
}

bool RestoreLog::made_repository(Rank rank, ino_t inode) const {
  return std::ranges::find(repositories_, std::pair(rank, inode)) != repositories_.end();
}

std::string RestoreLog::temporary_name(Rank rank) const {
  return fmt::format(".varve-{}-{}.part", token_, rank);
}

bool RestoreLog::is_temporary_name(const std::string& name) const {
  return name.starts_with(".varve-" + token_ + "-") && name.ends_with(".part");
}

Result<void> RestoreLog::append(const std::string& payload) {
  const std::string line = line_of(payload);
  if (bytes_ + line.size() > kLogBytes) return shorten(line);
  bytes_ += line.size();
  VARVE_TRY(write_all(fd_.get(), std::as_bytes(std::span(line.data(), line.size())), std::nullopt));
  if (::fdatasync(fd_.get()) != 0) return system_error("cannot sync the restore log", errno);
  return {};
}

Result<void> RestoreLog::start() {
  if (started()) return {};
  // May be the log of another restore, or missing.
  (void)::unlinkat(directory_fd_, name_.c_str(), 0);
  fd_ = base::UniqueFd(::openat(directory_fd_, name_.c_str(),
                                O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                0600));
  struct stat status {};
  if (!fd_.valid() || ::fstat(fd_.get(), &status) != 0) {
    return system_error("cannot create the restore log " + name_, errno);
  }
  started_at_ = status.st_ctim.tv_sec;
  const std::string header = head();
  bytes_ = header.size();
  VARVE_TRY(
      write_all(fd_.get(), std::as_bytes(std::span(header.data(), header.size())), std::nullopt));
  if (::fsync(fd_.get()) != 0 || ::fsync(directory_fd_) != 0) {
    return system_error("cannot sync the restore log", errno);
  }
  return {};
}

Result<void> RestoreLog::sync_target() {
  if (::syncfs(fd_.get()) != 0) return system_error("cannot sync the target", errno);
  return {};
}

Result<void> RestoreLog::add(const RestorePoint& point) {
  VARVE_TRY(append(fmt::format("{} {}", point.rank, point.offset)));
  newest_[0] = std::exchange(newest_[1], point);
  return {};
}

/// Replaces the log by a log with only the newest points before `line`.
Result<void> RestoreLog::shorten(const std::string& line) {
  std::string text = head();
  for (const RestorePoint& point : newest_) {
    text += line_of(fmt::format("{} {}", point.rank, point.offset));
  }
  text += line;
  const std::string temporary = ".varve-" + token_ + "-log.part";
  (void)::unlinkat(directory_fd_, temporary.c_str(), 0);
  base::UniqueFd fd(::openat(directory_fd_, temporary.c_str(),
                             O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             0600));
  if (!fd.valid()) return system_error("cannot create the restore log", errno);
  VARVE_TRY(write_all(fd.get(), std::as_bytes(std::span(text.data(), text.size())), std::nullopt));
  if (::fsync(fd.get()) != 0 ||
      ::renameat(directory_fd_, temporary.c_str(), directory_fd_, name_.c_str()) != 0 ||
      ::fsync(directory_fd_) != 0) {
    return system_error("cannot replace the restore log", errno);
  }
  bytes_ = text.size();
  fd_ = std::move(fd);
  return {};
}

Result<void> RestoreLog::remove() {
  if (!started() && !stale_) return {};
  fd_.reset();
  if (::unlinkat(directory_fd_, name_.c_str(), 0) != 0) {
    return system_error("cannot remove the restore log " + name_, errno);
  }
  return {};
}

}  // namespace varve::transfer

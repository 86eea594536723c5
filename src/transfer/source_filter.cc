// SPDX-License-Identifier: Apache-2.0
#include "transfer/source_filter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/unique_fd.h"
#include "transfer/entry_lister.h"
#include "transfer/source_listing.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

// The tag of a directory whose content can be made again: https://bford.info/cachedir/.
constexpr const char* kCacheTag = "CACHEDIR.TAG";
constexpr std::string_view kCacheSignature = "Signature: 8a477f597d28d172789f06886806bc55";

bool is_cache(int directory_fd) {
  // O_NONBLOCK: the tag may be a FIFO.
  const base::UniqueFd tag(
      ::openat(directory_fd, kCacheTag, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!tag.valid() || ::fstat(tag.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::array<char, kCacheSignature.size()> head{};
  const ssize_t got = ::pread(tag.get(), head.data(), head.size(), 0);
  return got == static_cast<ssize_t>(head.size()) &&
         std::string_view(head.data(), head.size()) == kCacheSignature;
}

/// Returns whether the entry is a directory lost+found without names visible to the user.
bool is_empty_lost_and_found(int directory_fd, const std::string& name) {
  if (name != "lost+found") return false;
  const base::UniqueFd fd(
      ::openat(directory_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno == EACCES;
  const auto names = list_names(fd.get());
  return names && names->empty();
}

/// Errors: kInvalid unless every component can be a name.
Result<void> check_relative(const std::string& path) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (!safe_name(std::string_view(path).substr(at, end - at))) {
      return Error(ErrorCode::kInvalid, "the path \"" + path +
                                            "\" is not one below the directory; give it relative "
                                            "to the directory, without . and .. components");
    }
    at = end + 1;
  }
  return {};
}

/// Returns whether a path below the open directory exists. Assumes so if the system does not tell.
bool exists_below(int directory_fd, const std::string& path) {
  base::UniqueFd above;
  int at_fd = directory_fd;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    base::UniqueFd next(::openat(at_fd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return errno != ENOENT && errno != ENOTDIR;
    above = std::move(next);
    at_fd = above.get();
    at = end + 1;
  }
  return true;
}

}  // namespace

Result<void> check_source(const std::string& directory, const StoreOptions& options) {
  const base::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  if (const auto names = list_names(fd.get()); !names) {
    return Error(names.error()).with_context("cannot list " + directory);
  }
  if (!options.only) return {};
  const bool any = std::ranges::any_of(
      *options.only, [&](const std::string& path) { return exists_below(fd.get(), path); });
  if (any) return {};
  return Error(ErrorCode::kNotFound, "the list names nothing that exists below " + directory +
                                         "; its first path is \"" + options.only->front() +
                                         "\". Nothing was stored");
}

Result<bool> is_empty_source(const std::string& directory, const StoreOptions& options) {
  StoreOptions quiet = options;
  quiet.left_out = {};  // The store itself reports the directories.
  quiet.other_device = {};
  VARVE_TRY_ASSIGN(SourceFilter filter, SourceFilter::create(quiet));
  const base::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("fstat", errno);
  VARVE_TRY_ASSIGN(const auto names, filter.list(fd.get(), status, {}));
  return std::ranges::all_of(names, [&](const std::string& name) {
    struct stat entry {};
    const bool seen = ::fstatat(fd.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0;
    return filter.leaves_out(name, seen ? std::optional(entry.st_mode) : std::nullopt) ||
           is_empty_lost_and_found(fd.get(), name);
  });
}

Result<SourceFilter> SourceFilter::create(const StoreOptions& options) {
  VARVE_TRY_ASSIGN(ExcludeRules rules, ExcludeRules::parse(options.excludes));
  const auto only = options.only.value_or(std::vector<std::string>());
  if (options.only && only.empty()) {
    return Error(ErrorCode::kInvalid, "the list of files is empty; nothing would be stored");
  }
  for (const std::string& path : only) VARVE_TRY(check_relative(path));
  SourceFilter filter(options, std::move(rules), PathSelection(only));
  filter.missing_.insert(only.begin(), only.end());
  return filter;
}

bool SourceFilter::leaves_out(std::string_view path, std::optional<mode_t> mode) {
  if (const auto found = missing_.find(path); found != missing_.end()) missing_.erase(found);
  const bool excluded = mode ? rules_.excludes(path, S_ISDIR(*mode))
                             : rules_.excludes(path, true) && rules_.excludes(path, false);
  if (excluded || !options_->only) return excluded;
  const auto match = selection_.match(path);
  if (match == PathSelection::Match::kOnTheWay) return mode && !S_ISDIR(*mode);
  return match == PathSelection::Match::kNone;
}

Result<std::vector<std::string>> SourceFilter::list(int directory_fd, const struct stat& status,
                                                    const std::string& path) {
  if (!device_) device_ = status.st_dev;
  const DirectoryIdentity identity{status.st_dev, status.st_ino};
  const DirectoryIdentity whole_device{status.st_dev, 0};
  const auto is_left_out = [&](const DirectoryIdentity& one) {
    return one == identity || one == whole_device;
  };
  if (std::ranges::any_of(options_->without_entries, is_left_out)) {
    if (options_->left_out) options_->left_out(path);
    return std::vector<std::string>();
  }
  // Only directories are compared: overlayfs gives a file the device of its lower file system.
  if (options_->one_file_system && status.st_dev != *device_) {
    if (options_->other_device) options_->other_device(path);
    return std::vector<std::string>();
  }
  if (options_->without_caches && is_cache(directory_fd)) {
    return std::vector<std::string>{kCacheTag};
  }
  return list_names(directory_fd);
}

std::vector<std::string> SourceFilter::missing() const {
  std::vector<std::string> paths;
  for (const std::string& path : missing_) {
    bool excluded = false;
    for (std::size_t end = path.find('/'); end != std::string::npos;
         end = path.find('/', end + 1)) {
      excluded = excluded || rules_.excludes(std::string_view(path).substr(0, end), true);
    }
    if (!excluded) paths.push_back(path);
  }
  return paths;
}

}  // namespace varve::transfer

namespace varve {

Result<void> check_store_options(const StoreOptions& options) {
  VARVE_TRY(transfer::SourceFilter::create(options));
  return {};
}

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
#include "cli/store_source.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "cli/command.h"

namespace varve::cli {
namespace {

constexpr std::size_t kListBytesMax = std::size_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Removes from a line the characters added by editors of other systems: the byte order mark of a
/// file, and the carriage return before each newline.
std::string without_marks(std::string line, bool is_first) {
  if (is_first && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

/// Opens a list. A FIFO without a writer opens at once; the caller waits for the data.
base::UniqueFd open_list(const std::string& path) {
  return base::UniqueFd(path == "-"
                            ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                            : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

/// Refuses a line with a NUL byte, as each line of a file in UTF-16 has.
Result<void> check_line(const std::string& line, const std::string& path) {
  if (line.find('\0') == std::string::npos) return {};
  return usage_error(path +
                     " has NUL bytes, so it is no list of lines in UTF-8; convert a file in "
                     "UTF-16 with `iconv -f UTF-16 -t UTF-8`, or give -0 if the names of "
                     "--files-from end in NUL bytes");
}

/// Calls `take` with each item of a file, or of standard input for "-". The last item may lack the
/// end mark. NUL-terminated items keep all bytes; lines go through without_marks().
Result<void> read_items(const std::string& path, char end, const control::StopRequest& stop,
                        const std::function<Result<void>(const std::string& item)>& take) {
  const base::UniqueFd fd = open_list(path);
  if (!fd.valid()) return base::system_error(path, errno);
  std::array<char, 65536> buffer{};
  std::string item;
  bool is_first = true;
  const auto take_item = [&]() -> Result<void> {
    const bool first = std::exchange(is_first, false);
    std::string whole = std::exchange(item, {});
    if (end != '\n') return take(whole);
    VARVE_TRY(check_line(whole, path));
    return take(without_marks(std::move(whole), first));
  };
  std::size_t bytes = 0;
  while (true) {
    VARVE_TRY(wait_for_data(fd.get(), stop));
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return base::system_error(path, errno);
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
    if (bytes > kListBytesMax) {
      return Error(ErrorCode::kInvalid, path + " has more than 1 GiB; it is no list of names");
    }
    std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
    for (auto at = rest.find(end); at != std::string_view::npos; at = rest.find(end)) {
      item += rest.substr(0, at);
      rest.remove_prefix(at + 1);
      VARVE_TRY(take_item());
    }
    item += rest;
  }
  return item.empty() ? Result<void>() : take_item();
}

/// Returns the components of a path, without empty components and ".".
std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    const std::string_view first = path.substr(0, end);
    if (!first.empty() && first != ".") components.emplace_back(first);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  }
  return components;
}

Result<std::vector<std::string>> read_paths(const SourceArguments& arguments,
                                            const std::string& directory,
                                            const control::StopRequest& stop) {
  std::vector<std::string> paths;
  VARVE_TRY(read_items(arguments.files_from, arguments.null_ends ? '\0' : '\n', stop,
                       [&](const std::string& item) -> Result<void> {
                         if (item.empty()) return {};
                         VARVE_TRY_ASSIGN(auto path, as_usage(listed_path(item, directory)));
                         if (std::ranges::count(components_of(path), "..") > 0) {
                           return usage_error("\"" + item +
                                              "\" has a component ..; give paths "
                                              "below " +
                                              directory);
                         }
                         paths.push_back(std::move(path));
                         return {};
                       }));
  return paths;
}

/// Returns the path of `directory` from the root, without a slash at the end; "" for the root.
std::string joined_path(const std::filesystem::path& directory) {
  std::string path;
  for (const std::string& component : components_of(directory.lexically_normal().native())) {
    path += '/' + component;
  }
  return path;
}

/// Returns whether the directory has an entry named by the absolute `path` as a path below it.
bool has_below(const std::string& directory, std::string_view path) {
  std::error_code error;
  return std::filesystem::symlink_status(directory + std::string(path), error).type() !=
         std::filesystem::file_type::not_found;
}

/// Returns whether the absolute path `pattern` is the directory, perhaps through symbolic links.
bool is_directory_itself(std::string_view pattern, const std::string& directory) {
  if (!pattern.starts_with('/')) return false;
  std::error_code error;
  const auto named = joined_path(std::filesystem::canonical(pattern, error));
  if (error || named != joined_path(std::filesystem::canonical(directory, error))) return false;
  return named.empty() || !has_below(directory, joined_path(pattern));
}

/// Returns the pattern relative to `directory` if the pattern begins with the absolute path of the
/// directory, as for restic, borg and tar. If the directory has an entry with the whole path, the
/// pattern can match below the directory and stays unchanged.
/// Errors: kUsage for the path of the directory itself.
Result<std::string> relative_pattern(const std::string& pattern, const std::string& directory) {
  const std::size_t sign = pattern.starts_with('!') ? 1 : 0;
  const std::string_view rest = std::string_view(pattern).substr(sign);
  std::error_code error;
  if (is_directory_itself(rest, directory)) {
    return usage_error("the pattern \"" + pattern + "\" is the stored directory itself; exclude " +
                       "entries below the directory, or do not store it");
  }
  const std::string tops[] = {joined_path(std::filesystem::absolute(directory, error)),
                              joined_path(std::filesystem::canonical(directory, error))};
  for (const std::string& top : tops) {
    const bool is_below =
        !top.empty() && rest.size() > top.size() + 1 && rest.starts_with(top + "/");
    if (!is_below || has_below(directory, top)) continue;
    return pattern.substr(0, sign) + std::string(rest.substr(top.size()));
  }
  return pattern;
}

}  // namespace

Result<void> wait_for_data(int fd, const control::StopRequest& stop) {
  // Without a descriptor of the stop, the wait asks for the stop each second.
  const int timeout_ms = stop.descriptor() < 0 ? 1000 : -1;
  while (!stop.stopped()) {
    pollfd waits[] = {{fd, POLLIN, 0}, {stop.descriptor(), POLLIN, 0}};
    if (::poll(waits, std::size(waits), timeout_ms) < 0 && errno != EINTR) {
      return base::system_error("poll", errno);
    }
    if (!stop.stopped() && waits[0].revents != 0) return {};
  }
  return Error(ErrorCode::kInterrupted, "interrupted");
}

bool chooses_entries(const SourceArguments& arguments) {
  return !arguments.excludes.empty() || !arguments.exclude_files.empty() ||
         !arguments.files_from.empty() || arguments.exclude_caches || arguments.one_file_system;
}

Result<std::string> listed_path(std::string_view path, const std::string& directory) {
  std::vector<std::string> components = components_of(path);
  if (path.starts_with('/')) {
    std::error_code error;
    const auto top = components_of(std::filesystem::absolute(directory, error).native());
    const bool below =
        components.size() >= top.size() && std::equal(top.begin(), top.end(), components.begin());
    if (!below) {
      return Error(ErrorCode::kInvalid, "\"" + std::string(path) + "\" is not below " + directory +
                                            "; give paths relative to that directory");
    }
    components.erase(components.begin(),
                     components.begin() + static_cast<std::ptrdiff_t>(top.size()));
  }
  std::string relative;
  for (const std::string& component : components) {
    if (!relative.empty()) relative += '/';
    relative += component;
  }
  return relative;
}

Result<StoreOptions> read_source_options(const SourceArguments& arguments,
                                         const std::string& directory,
                                         const control::StopRequest& stop) {
  StoreOptions options;
  options.without_caches = arguments.exclude_caches;
  options.one_file_system = arguments.one_file_system;
  StoreOptions of_the_line;
  for (const std::string& pattern : arguments.excludes) {
    VARVE_TRY_ASSIGN(auto relative, relative_pattern(pattern, directory));
    of_the_line.excludes.push_back(std::move(relative));
  }
  VARVE_TRY(as_usage(check_store_options(of_the_line)));
  for (const std::string& file : arguments.exclude_files) {
    VARVE_TRY(read_items(file, '\n', stop, [&](const std::string& line) -> Result<void> {
      if (line.empty() || line.starts_with('#')) return {};
      VARVE_TRY_ASSIGN(auto relative, relative_pattern(line, directory));
      options.excludes.push_back(std::move(relative));
      return {};
    }));
  }
  // Patterns of the command line come last, to take precedence.
  options.excludes.insert(options.excludes.end(), of_the_line.excludes.begin(),
                          of_the_line.excludes.end());
  if (!arguments.files_from.empty()) {
    VARVE_TRY_ASSIGN(options.only, read_paths(arguments, directory, stop));
    // The directory itself stands for everything below it.
    if (std::ranges::any_of(*options.only, &std::string::empty)) options.only.reset();
  }
  VARVE_TRY(check_store_options(options));
  return options;
}

void add_source_options(Command& command, SourceArguments& arguments) {
  command
      .add_option("--exclude", arguments.excludes,
                  "Do not store entries that match, nor anything below them; like a line of "
                  "gitignore(5); may be given more than once")
      .type_name("PATTERN")
      .one_value_each();
  command
      .add_option("--exclude-from", arguments.exclude_files,
                  "Read such patterns from a file, one on each line")
      .type_name("FILE")
      .one_value_each();
  command.add_flag("--exclude-caches", arguments.exclude_caches,
                   "Of a directory with a CACHEDIR.TAG, store only that file");
  command.add_flag("-x,--one-file-system", arguments.one_file_system,
                   "Store mount points below the directory as empty directories");
  auto files_from = command
                        .add_option("--files-from", arguments.files_from,
                                    "Store only the files and directories that the file lists, one "
                                    "on each line; - is standard input")
                        .type_name("FILE");
  command.add_flag("-0,--null", arguments.null_ends, "The names in the list end in NUL bytes")
      .needs(files_from);
}

}  // namespace varve::cli

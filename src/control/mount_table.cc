// SPDX-License-Identifier: Apache-2.0
#include "control/mount_table.h"

#include <fmt/core.h>
#include <sys/xattr.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace varve::control {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// The kernel writes space, tab, newline and backslash as three octal digits.
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                  (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) result.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return result;
}

/// True if `path` is `directory` or lies below it.
bool lies_in(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> table;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto fields = words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    // id parent device root mount_point options [optional...] - type source super_options
    for (std::size_t i = 6; i + 2 < fields.size(); ++i) {
      if (fields[i] != "-") continue;
      table.push_back({unescape(fields[4]), std::string(fields[i + 1]), unescape(fields[i + 2])});
      break;
    }
  }
  return table;
}

Result<MountedPath> find_mount_in(const std::vector<MountEntry>& table, std::string_view path) {
  const MountEntry* deepest = nullptr;
  for (const MountEntry& entry : table) {
    if (!lies_in(path, entry.mount_point)) continue;
    if (deepest == nullptr || entry.mount_point.size() >= deepest->mount_point.size()) {
      deepest = &entry;
    }
  }
  if (deepest == nullptr || deepest->type != kFileSystemType) {
    return Error(ErrorCode::kNotFound, fmt::format("{} is not inside a Varve mount", path));
  }
  std::string_view relative = path.substr(deepest->mount_point.size());
  while (relative.starts_with('/')) relative.remove_prefix(1);
  return MountedPath{deepest->mount_point, deepest->source, std::string(relative)};
}

Result<MountedPath> find_mount(const std::string& path) {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error(ErrorCode::kIo, "cannot read /proc/self/mountinfo");
  const auto table = parse_mount_table(text.str());

  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real != nullptr) return find_mount_in(table, real.get());
  // Below the mount of a daemon that has died nothing can be looked at any more.
  std::error_code ignored;
  std::string absolute = std::filesystem::absolute(path, ignored).lexically_normal().string();
  while (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
  return find_mount_in(table, absolute);
}

std::vector<std::string> mounts_of(const std::string& repository) {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> points;
  for (const MountEntry& entry : parse_mount_table(text.str())) {
    if (entry.type == kFileSystemType && entry.source == repository) {
      points.push_back(entry.mount_point);
    }
  }
  return points;
}

Result<std::string> path_in_repository(const MountedPath& path) {
  char root[4096];
  const ssize_t bytes = ::getxattr(path.mount_point.c_str(), "user.varve.root", root, sizeof root);
  if (bytes < 0) {
    return Error(ErrorCode::kIo, fmt::format("{}: {}", path.mount_point, std::strerror(errno)),
                 errno);
  }
  std::string result(root, static_cast<std::size_t>(bytes));
  if (!result.empty() && !path.relative.empty()) result += '/';
  return result + path.relative;
}

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
#include "base/mount_table.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text_of_file.h"

namespace varve::base {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// Replaces octal escapes: the kernel writes space, tab, newline and backslash as three octal
/// digits.
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

std::optional<std::uint64_t> number_from(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Parses MAJOR:MINOR.
std::optional<dev_t> device_from(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto major_number = number_from(text.substr(0, colon));
  const auto minor_number = number_from(text.substr(std::min(colon + 1, text.size())));
  if (!major_number || !minor_number) return std::nullopt;
  return makedev(static_cast<unsigned>(*major_number), static_cast<unsigned>(*minor_number));
}

/// Returns the user_id= that the kernel adds to the options of a FUSE file system.
std::optional<uid_t> user_from(std::string_view options) {
  constexpr std::string_view kName = "user_id=";
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(','), options.size());
    const std::string_view option = options.substr(0, end);
    options.remove_prefix(std::min(end + 1, options.size()));
    if (!option.starts_with(kName)) continue;
    const auto number = number_from(option.substr(kName.size()));
    if (number) return static_cast<uid_t>(*number);
  }
  return std::nullopt;
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
      const auto id = number_from(fields[0]);
      const auto device = device_from(fields[2]);
      if (!id || !device) break;
      MountEntry entry;
      entry.id = static_cast<std::int64_t>(*id);
      entry.device = *device;
      entry.root = unescape(fields[3]);
      entry.mount_point = unescape(fields[4]);
      entry.type = std::string(fields[i + 1]);
      entry.source = unescape(fields[i + 2]);
      if (i + 3 < fields.size()) entry.user = user_from(fields[i + 3]);
      table.push_back(std::move(entry));
      break;
    }
  }
  return table;
}

std::vector<MountEntry> read_mount_table() {
  return parse_mount_table(text_of_file("/proc/self/mountinfo"));
}

}  // namespace varve::base

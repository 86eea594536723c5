// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/calendar_text.h"
#include "base/clock.h"
#include "base/system_error.h"

namespace varve::cli {
namespace {

// The first error of stdout, which is process-wide, too. Later calls change errno.
int output_error = 0;

/// Returns the length of the UTF-8 character at the start of `text`, 0 if there is none (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : (first & 0xf0) == 0xe0         ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Reject overlong forms, surrogates and numbers past U+10FFFF.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

/// Returns true for C0, DEL, C1, and marks that reorder text (bidirectional overrides and
/// isolates).
bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() == 3 && byte(0) == 0xe2) {
    if (byte(1) == 0x80)
      return (byte(2) >= 0xa8 && byte(2) <= 0xae) || byte(2) == 0x8e || byte(2) == 0x8f;
    if (byte(1) == 0x81) return byte(2) >= 0xa6 && byte(2) <= 0xa9;
  }
  return false;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

void print(std::string_view text) {
  const bool printed = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!printed && output_error == 0) output_error = errno;
}

void print_json(const char* message_type, Json object) {
  object["message_type"] = message_type;
  print(object.dump());
  print("\n");
}

Result<void> finish_output() {
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed && output_error == 0) output_error = errno;
  if (flushed && std::ferror(stdout) == 0) return {};
  return base::system_error("cannot write the results", output_error);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (character == "\\") {
      out += "\\\\";
    } else if (length > 0 && !is_control(character)) {
      out += character;
    } else {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(character.size());
  }
  return out;
}

void put_name(Json& object, const std::string& key, const std::string& name) {
  object[key] = name;
  if (is_utf8(name)) return;
  std::string hex;
  for (const char c : name) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  object[key + "_hex"] = hex;
}

void put_time(Json& object, const std::string& key, const Timestamp& time) {
  object[key] = iso_time(time);
  object[key + "_unix"] = time.seconds;
}

std::string name_text(const std::string& name) {
  return ::isatty(STDOUT_FILENO) == 1 ? printable(name) : name;
}

std::string size_text(std::uint64_t bytes, bool exact) {
  if (exact) return std::to_string(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would round to 1024.0.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string exact_size_text(std::uint64_t bytes, bool exact) {
  if (exact || bytes < 1024) return std::to_string(bytes) + (exact ? "" : " bytes");
  return fmt::format("{} ({} bytes)", size_text(bytes, false), bytes);
}

std::string time_text(const Timestamp& time) { return base::local_time_text(time); }

std::string iso_time(const Timestamp& time) {
  const auto text = base::calendar_text(time, ::gmtime_r, "%Y-%m-%dT%H:%M:%S");
  return text ? fmt::format("{}.{:09}Z", *text, time.nanoseconds) : std::to_string(time.seconds);
}

std::string mode_text(std::uint32_t mode) {
  std::string text = "?rwxrwxrwx";
  switch (mode & S_IFMT) {
    case S_IFREG:
      text[0] = '-';
      break;
    case S_IFDIR:
      text[0] = 'd';
      break;
    case S_IFLNK:
      text[0] = 'l';
      break;
    case S_IFBLK:
      text[0] = 'b';
      break;
    case S_IFCHR:
      text[0] = 'c';
      break;
    case S_IFIFO:
      text[0] = 'p';
      break;
    case S_IFSOCK:
      text[0] = 's';
      break;
    default:
      break;
  }
  for (std::size_t i = 0; i < 9; ++i) {
    if ((mode & (0400U >> i)) == 0) text[i + 1] = '-';
  }
  if ((mode & S_ISUID) != 0) text[3] = text[3] == 'x' ? 's' : 'S';
  if ((mode & S_ISGID) != 0) text[6] = text[6] == 'x' ? 's' : 'S';
  if ((mode & S_ISVTX) != 0) text[9] = text[9] == 'x' ? 't' : 'T';
  return text;
}

const char* type_text(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "file";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symlink";
    case S_IFBLK:
      return "block device";
    case S_IFCHR:
      return "character device";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    default:
      return "unknown";
  }
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view alignment) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool right = i < alignment.size() && alignment[i] == 'r';
      const std::string padding(widths[i] - display_width(row[i]), ' ');
      if (i > 0) out += "  ";
      if (right) out += padding;
      out += row[i];
      // Trailing blanks would look like a part of the name.
      if (!right && i + 1 < row.size()) out += padding;
    }
    out += "\n";
  }
  return out;
}

std::string problems_text(std::uint64_t problems) {
  return problems == 1 ? std::string("1 file was not stored, or not as it is")
                       : fmt::format("{} files were not stored, or not as they are", problems);
}

void put_version(Json& object, const VersionInfo& version) {
  put_name(object, "series", version.series_name);
  put_name(object, "version", version.name);
}

Json version_json(const VersionInfo& version) {
  const bool sealed = version.state == VersionState::kSealed;
  Json object{{"state", sealed ? "sealed" : "open"},
              {"number", static_cast<std::uint32_t>(version.number)},
              {"entries", version.entries},
              {"stored_bytes", version.stored_bytes}};
  put_version(object, version);
  put_time(object, "opened_at", version.opened_at);
  if (!sealed) return object;  // The seal records the other sizes.
  object["logical_bytes"] = version.logical_bytes;
  object["new_bytes"] = version.unique_bytes;
  put_time(object, "sealed_at", version.sealed_at);
  if (version.claimed_at) put_time(object, "claimed_at", *version.claimed_at);
  if (version.problems != 0) object["problems"] = version.problems;
  if (version.origin) {
    Json origin{{"repository", version.origin->repository},
                {"series_id", static_cast<std::uint32_t>(version.origin->series)},
                {"number", static_cast<std::uint32_t>(version.origin->number)},
                {"whole", version.origin->whole}};
    put_time(origin, "sealed_at", version.origin->sealed_at);
    object["origin"] = std::move(origin);
  }
  return object;
}

Json entry_json(const VersionInfo& version, const std::string& path, const Attributes& attributes) {
  Json object{{"type", type_text(attributes.mode)}, {"size_bytes", attributes.size}};
  put_version(object, version);
  put_name(object, "path", path);
  put_time(object, "mtime", attributes.mtime);
  return object;
}

std::string open_text(const VersionInfo& version) {
  return fmt::format("open since {}, {} entries", time_text(version.opened_at), version.entries);
}

std::string version_summary(const VersionInfo& version) {
  return fmt::format(
      "{}/{}: {} entries, {}, {} of it new, {} stored\n", printable(version.series_name),
      printable(version.name), version.entries, size_text(version.logical_bytes, false),
      size_text(version.unique_bytes, false), size_text(version.stored_bytes, false));
}

}  // namespace varve::cli

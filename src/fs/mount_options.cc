// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace varve::fs {
namespace {

/// Options for mount(8), systemd or the kernel. Varve ignores the options.
constexpr std::array<std::string_view, 23> kSwallowed = {
    "defaults",   "auto",        "noauto",   "nofail",  "_netdev",    "user",
    "nouser",     "users",       "owner",    "group",   "async",      "relatime",
    "norelatime", "strictatime", "atime",    "noatime", "nodiratime", "diratime",
    "lazytime",   "nolazytime",  "iversion", "mand",    "nomand"};
constexpr std::array<std::string_view, 2> kSwallowedPrefixes = {"x-", "comment="};

constexpr std::uint32_t kSpinMax = 1000;
/// Maximum pause of a program removing a version; after a longer pause, the removal has stopped.
constexpr std::uint32_t kRmDeletesS = 60;

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '\\' && i + 1 < list.size()) {
      parts.back() += list[++i];
    } else if (list[i] == ',') {
      parts.emplace_back();
    } else {
      parts.back() += list[i];
    }
  }
  std::erase(parts, "");
  return parts;
}

std::optional<std::uint32_t> parse_number(std::string_view text, int base) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error bad_value(std::string_view name, std::string_view value, std::string_view wanted) {
  return {ErrorCode::kInvalid, fmt::format("mount option {}={}: {}", name, value, wanted)};
}

/// Parses the patterns of folders beside versions, separated by ":".
Result<void> parse_beside(std::string_view value, MountOptions& options) {
  options.beside.emplace();
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find(':', begin), value.size());
    const std::string_view pattern = value.substr(begin, end - begin);
    const bool names_all = pattern.find_first_not_of("*?") == std::string_view::npos;
    if (names_all || pattern.find('/') != std::string_view::npos) {
      return bad_value("beside", value,
                       "give names or patterns of folders, such as dirvish:logs; a version cannot "
                       "have such a name");
    }
    options.beside->emplace_back(pattern);
    begin = end + 1;
  }
  return {};
}

Result<void> parse_valued(std::string_view name, std::string_view value, bool sloppy,
                          MountOptions& options) {
  if (name == "uid" || name == "gid") {
    const auto number = parse_number(value, 10);
    if (!number) return bad_value(name, value, "give a number");
    (name == "uid" ? options.uid : options.gid) = number;
  } else if (name == "umask") {
    options.umask = parse_number(value, 8);
    if (!options.umask || *options.umask > 0777) {
      return bad_value(name, value, "give an octal number up to 777");
    }
  } else if (name == "cache") {
    const auto bytes = parse_size(value);
    if (!bytes || *bytes == 0) return bad_value(name, value, "give a size, such as 64M");
    options.open.cache_bytes = *bytes;
  } else if (name == "index_memory") {
    const auto bytes = parse_size(value);
    if (!bytes || *bytes == 0) return bad_value(name, value, "give a size, such as 256M");
    options.open.index_bytes = *bytes;
  } else if (name == "arrange_rate") {
    const auto bytes = parse_size(value);
    if (!bytes) return bad_value(name, value, "give a size per second, such as 50M");
    options.open.arrange_bytes_per_second = *bytes;
  } else if (name == "autoseal") {
    const auto number = parse_number(value, 10);
    if (value != "off" && !number) {
      return bad_value(name, value, "give a number of seconds, or off");
    }
    options.open.autoseal_s = value == "off" ? std::nullopt : number;
  } else if (name == "follow") {
    const auto number = parse_number(value, 10);
    if (value != "off" && (!number || *number == 0)) {
      return bad_value(name, value, "give a number of seconds from 1 on, or off");
    }
    options.follow_s = value == "off" ? std::nullopt : number;
  } else if (name == "rm_deletes") {
    options.rm_deletes_s = parse_number(value, 10);
    if (!options.rm_deletes_s || *options.rm_deletes_s == 0) {
      return bad_value(name, value, "give a number of seconds from 1 on");
    }
  } else if (name == "beside") {
    VARVE_TRY(parse_beside(value, options));
  } else if (name == "spin") {
    const auto number = parse_number(value, 10);
    if (!number || *number > kSpinMax) {
      return bad_value(name, value, "give a number of microseconds up to 1000");
    }
    options.spin = std::chrono::microseconds(*number);
  } else if (name == "xattr") {
    if (value != "auto" && value != "on" && value != "off") {
      return bad_value(name, value, "give auto, on or off");
    }
    options.xattrs = value == "on"    ? XattrAnswers::kOn
                     : value == "off" ? XattrAnswers::kOff
                                      : XattrAnswers::kAuto;
  } else if (name == "engine") {
    if (value.empty()) return bad_value(name, value, "give the name of a restore engine");
    options.open.engine = value;
  } else if (name == "passphrase_file" || name == "keyfile" || name == "key_command") {
    if (value.empty()) return bad_value(name, value, "give a file or a command");
    (name == "passphrase_file" ? options.key.passphrase_file
     : name == "keyfile"       ? options.key.key_file
                               : options.key.key_command) = value;  // The last value counts.
    return control::check_one_place(options.key, {"passphrase_file=", "keyfile=", "key_command="});
  } else if (name == "series" || name == "version") {
    if (value.empty()) return bad_value(name, value, "give a name");
    (name == "series" ? options.series : options.version) = value;
  } else if (name == "fsname" || name == "subtype") {
    if (value.empty()) return bad_value(name, value, "give a name");
    (name == "fsname" ? options.source : options.subtype) = value;
  } else if (!sloppy) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("unknown mount option {}={}; see mount.varve(8)", name, value));
  }
  return {};
}

Result<void> parse_flag(std::string_view name, bool sloppy, MountOptions& options) {
  // As with mount(8), the last option of two opposites wins.
  if (name == "ro" || name == "rw") {
    options.open.read_only = name == "ro";
  } else if (name == "allow_other") {
    options.allow_other = true;
  } else if (name == "default_permissions") {
    options.default_permissions = true;
  } else if (name == "suid" || name == "nosuid") {
    options.set_user_ids_work = name == "suid";
  } else if (name == "dev" || name == "nodev") {
    options.devices_work = name == "dev";
  } else if (name == "exec" || name == "noexec") {
    options.no_execution = name == "noexec";
  } else if (name == "foreground") {
    options.foreground = true;
  } else if (name == "debug") {
    options.debug = true;
  } else if (name == "rmdir_deletes") {
    options.rmdir_deletes = true;
  } else if (name == "rm_deletes") {
    options.rm_deletes_s = kRmDeletesS;
  } else if (name == "beside") {
    options.beside.emplace();
  } else if (name == "trust_owner") {
    options.open.trust_owner = true;
  } else if (name == "accept_older") {
    options.open.accept_older = true;
  } else if (name == "noarrange") {
    options.open.arrange = false;
  } else if (name == "auto_unmount") {
    return Error(ErrorCode::kUnsupported,
                 "mount option auto_unmount is not allowed: when the daemon ends, the mount point "
                 "would be empty, and a mirroring rsync would delete its copy");
  } else if (!sloppy) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("unknown mount option {}; see mount.varve(8)", name));
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{}) return std::nullopt;
  unsigned shift = 0;
  if (end != last) {
    if (end + 1 != last) return std::nullopt;
    switch (*end) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      case 't':
      case 'T':
        shift = 40;
        break;
      default:
        return std::nullopt;
    }
  }
  if (value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return value << shift;
}

Result<void> parse_mount_options(std::string_view list, bool sloppy, MountOptions& options) {
  for (const std::string& part : split_list(list)) {
    const std::string_view option = part;
    if (std::ranges::find(kSwallowed, option) != kSwallowed.end() ||
        std::ranges::any_of(kSwallowedPrefixes,
                            [&](std::string_view prefix) { return option.starts_with(prefix); })) {
      continue;
    }
    const std::size_t equals = option.find('=');
    if (equals == std::string_view::npos) {
      VARVE_TRY(parse_flag(option, sloppy, options));
    } else {
      VARVE_TRY(parse_valued(option.substr(0, equals), option.substr(equals + 1), sloppy, options));
    }
  }
  return {};
}

Result<void> check_mount_options(const MountOptions& options) {
  if (options.series.empty() && !options.version.empty()) {
    return Error(
        ErrorCode::kInvalid,
        fmt::format("mount option version={} needs the option series= too", options.version));
  }
  if (options.xattrs == XattrAnswers::kOff &&
      (options.allow_other || options.default_permissions)) {
    return Error(
        ErrorCode::kInvalid,
        "mount option xattr=off is not allowed with allow_other or default_permissions: "
        "the kernel would not see access control lists, and would allow more than they do");
  }
  return {};
}

namespace {

void append_escaped(std::string_view value, std::string& list) {
  for (const char c : value) {
    if (c == ',' || c == '\\') list += '\\';
    list += c;
  }
}

}  // namespace

std::string fuse_option_list(const MountOptions& options, std::string_view repository) {
  std::string list = "fsname=";
  append_escaped(options.source.empty() ? repository : options.source, list);
  list += ",subtype=";
  append_escaped(options.subtype.empty() ? "varve" : options.subtype, list);
  list += ",max_read=1048576";
  list += options.set_user_ids_work ? ",suid" : ",nosuid";
  list += options.devices_work ? ",dev" : ",nodev";
  if (options.no_execution) list += ",noexec";
  if (options.open.read_only) list += ",ro";
  if (options.allow_other) list += ",allow_other";
  if (options.allow_other || options.default_permissions) list += ",default_permissions";
  return list;
}

}  // namespace varve::fs

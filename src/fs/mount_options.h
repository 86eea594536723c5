// SPDX-License-Identifier: Apache-2.0
// The -o options of a mount, in the form of varve(1), mount(8) and fstab(5).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/key_source.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::fs {

/// Whether a mount answers requests for extended attributes.
enum class XattrAnswers : std::uint8_t {
  kAuto,  ///< Yes, unless the mount shows only one sealed version without extended attributes.
  kOn,
  kOff,
};

struct MountOptions {
  OpenOptions open;
  control::KeyPlace key;  ///< The place of the key; empty = the environment.
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint32_t> umask;
  std::string series;  ///< Series shown as the mount's root; "" = the whole repository.
  /// Version of `series` shown as the root; "" = none, "latest" = the newest sealed version.
  std::string version;
  std::string source;   ///< fsname: the source in the mount table; "" = the repository.
  std::string subtype;  ///< subtype: the type is fuse.SUBTYPE; "" = varve.
  bool allow_other = false;
  bool default_permissions = false;  ///< Also on with allow_other.
  bool set_user_ids_work = false;    ///< suid; off unless asked for.
  bool devices_work = false;         ///< dev; off unless asked for.
  bool no_execution = false;         ///< noexec.
  XattrAnswers xattrs = XattrAnswers::kAuto;
  bool rmdir_deletes = false;                 ///< rmdir deletes sealed versions.
  std::optional<std::uint32_t> rm_deletes_s;  ///< rm -r deletes sealed versions.
  /// Programs may keep files beside versions, and folders whose names match a pattern.
  std::optional<std::vector<std::string>> beside;
  /// Time to poll for the next request of a busy program before sleeping; 0 = none.
  std::chrono::microseconds spin{0};
  /// Time between two looks for newer versions of an attached folder; nullopt: none.
  std::optional<std::uint32_t> follow_s = 60;
  bool foreground = false;
  bool debug = false;  ///< Prints every request; stays in the foreground.
};

/// Adds the options of one comma-separated list to `options`. "\," is a comma in a value. Ignores
/// options for mount(8) and fstab only. `sloppy` ignores unknown options too.
/// Errors: kInvalid for an unknown option or a bad value, with the option's name; kUnsupported for
/// a known option without support in the present version of Varve.
[[nodiscard]] Result<void> parse_mount_options(std::string_view list, bool sloppy,
                                               MountOptions& options);

/// Checks the options for conflicts, after all lists are parsed.
/// Errors: kInvalid for conflicting options.
[[nodiscard]] Result<void> check_mount_options(const MountOptions& options);

/// Parses a size such as "64M": a number with K, M, G or T for powers of 1024.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// Returns the options for fuse_session_new(). The source is `repository` unless the options name
/// another.
[[nodiscard]] std::string fuse_option_list(const MountOptions& options,
                                           std::string_view repository);

}  // namespace varve::fs

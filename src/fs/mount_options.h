// SPDX-License-Identifier: Apache-2.0
// The -o options of a mount, as varve(1), mount(8) and fstab(5) pass them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/options.h"
#include "varve/result.h"

namespace varve::fs {

struct MountOptions {
  OpenOptions open;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint32_t> umask;
  std::string series;   ///< What the mount's root is: this series, "" for the repository,
  std::string version;  ///< or this version of it ("" for none; "latest" for the newest sealed).
  std::string source;   ///< fsname: the source that the mount table shows; "" for the repository.
  std::string subtype;  ///< subtype: the type is fuse.SUBTYPE; "" for varve.
  bool allow_other = false;
  bool default_permissions = false;  ///< Also on with allow_other.
  bool set_user_ids_work = false;    ///< suid; off unless asked for.
  bool devices_work = false;         ///< dev; off unless asked for.
  bool no_execution = false;         ///< noexec.
  bool rmdir_deletes = false;        ///< rmdir of a sealed version deletes it.
  /// How long to wait awake for the next request of a busy program; 0 = not at all.
  std::chrono::microseconds spin{0};
  bool foreground = false;
  bool debug = false;  ///< Prints every request; stays in the foreground.
};

/// Adds the options of one comma-separated list ("\," stands for a comma in a value) to
/// `options`. Options that concern only mount(8) and fstab are swallowed. kInvalid names the
/// option that is unknown or has a bad value; `sloppy` lets unknown ones pass. kUnsupported
/// for options that this version knows but cannot fulfil.
[[nodiscard]] Result<void> parse_mount_options(std::string_view list, bool sloppy,
                                               MountOptions& options);

/// kInvalid for options that do not go together, once all lists are parsed.
[[nodiscard]] Result<void> check_mount_options(const MountOptions& options);

/// "64M" and the like: a number with K, M, G or T for powers of 1024.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// What fuse_session_new() is given for these options. `repository` is shown as the source unless
/// they name another.
[[nodiscard]] std::string fuse_option_list(const MountOptions& options,
                                           std::string_view repository);

}  // namespace varve::fs

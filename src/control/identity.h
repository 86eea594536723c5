// SPDX-License-Identifier: Apache-2.0
// The protocol number, and the identity that a daemon reports.
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"

namespace varve::control {

/// Number of the protocol. The number grows with each change that older commands or daemons would
/// misunderstand. Protocol 1 had neither the number nor kHello.
inline constexpr std::uint32_t kProtocol = 2;

/// A daemon's answer to kHello. Every later protocol keeps kHello and this answer, so that the
/// command and the daemon can each name the protocol of the peer.
struct Identity {
  std::uint32_t protocol = 0;  ///< Protocol of the daemon.
  std::int64_t process = 0;    ///< Process id of the daemon.
  std::string repository;      ///< Path of the repository's folder.
  std::uint64_t device = 0;    ///< Device number of the repository's folder.
  std::uint64_t inode = 0;     ///< Inode number of the repository's folder.
  /// Device number of the mount's file system, as st_dev; 0 while nothing is mounted.
  std::uint64_t mount_device = 0;
  std::string mount_root;  ///< SERIES or SERIES/VERSION visible in the mount; "" for all.
  /// Inode number of the daemon's mount namespace; 0 for a daemon of an older Varve.
  std::uint64_t mount_namespace = 0;
  bool operator==(const Identity&) const = default;
};

/// Returns the inode number of the calling process's mount namespace; 0 without /proc.
[[nodiscard]] std::uint64_t own_mount_namespace();

/// Returns the daemon's error for a request of another protocol (kUnsupported).
[[nodiscard]] Error protocol_refused(std::uint32_t protocol_of_command);

/// Returns the command's error for a daemon of another protocol (kUnsupported). Pass 1 for a daemon
/// without a protocol number.
[[nodiscard]] Error daemon_refused(std::uint32_t protocol_of_daemon, std::int64_t process);

}  // namespace varve::control

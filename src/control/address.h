// SPDX-License-Identifier: Apache-2.0
// Finds the control socket of a repository: REPO/control.sock, or an address outside the folder if
// the repository's file system has no sockets.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::control {

/// The folder of a repository, held open. While the folder is open, its device and inode number
/// identify the repository.
struct Folder {
  base::UniqueFd fd;
  struct stat status {};
};

/// Opens the folder of a repository.
/// Errors: the errors of open(2).
[[nodiscard]] Result<Folder> open_folder(const std::string& path);

/// Returns the folder for sockets of `uid`'s daemons: /run/varve for root, /run/user/UID/varve for
/// other users. Ignores the environment, so that root finds a user's daemon.
[[nodiscard]] std::string socket_folder(uid_t uid);

/// Opens socket_folder(uid). With `make`, creates the folder if needed.
/// Errors: kNotPermitted unless the folder belongs to `uid` and no other user can write to it; kIo.
[[nodiscard]] Result<base::UniqueFd> open_socket_folder(uid_t uid, bool make);

/// Returns the file name of the repository's socket in socket_folder().
[[nodiscard]] std::string socket_name(const struct stat& repository);

/// Returns abstract socket names (unix(7), without the leading NUL) for a repository served by
/// `uid`. Any process can take an abstract name, so the caller must check the peer's user.
[[nodiscard]] std::vector<std::string> abstract_names(const struct stat& repository, uid_t uid);

}  // namespace varve::control

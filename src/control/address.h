// SPDX-License-Identifier: Apache-2.0
// Where the control socket of a repository is: REPO/control.sock, or a place of the machine
// where the repository's file system has no sockets.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::control {

/// The folder of a repository, held open. Its device and inode number name the repository for as
/// long as it is.
struct Folder {
  base::UniqueFd fd;
  struct stat status {};
};

/// Errors: what open(2) answers.
[[nodiscard]] Result<Folder> open_folder(const std::string& path);

/// Returns the folder for sockets of `uid`'s daemons: /run/varve for root, /run/user/UID/varve for
/// other users. It does not go by the environment, so that root finds the daemon of a user.
[[nodiscard]] std::string socket_folder(uid_t uid);

/// Opens socket_folder(uid). Makes it if `make` is set. Fails unless it belongs to `uid` and others
/// cannot write to it.
[[nodiscard]] Result<base::UniqueFd> open_socket_folder(uid_t uid, bool make);

/// Returns the file name of the repository's socket in socket_folder().
[[nodiscard]] std::string socket_name(const struct stat& repository);

/// Returns abstract socket names (unix(7), without the leading NUL) for a repository that `uid`
/// serves. Any process can take such a name, so the peer's user must be checked.
[[nodiscard]] std::vector<std::string> abstract_names(const struct stat& repository, uid_t uid);

}  // namespace varve::control

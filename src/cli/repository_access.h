// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/client.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// Returns whether VARVE_TRUST, a list of paths separated by colons, contains this repository.
[[nodiscard]] bool is_trusted(const std::string& path);

/// Opens a repository for reading. Works beside a process that writes.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_read(const std::string& path,
                                                               bool probe_catalog = false);
/// Opens a repository for writing. Waits for a daemon that is ending.
/// Errors: kLocked if another process writes, for example a daemon.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_write(const std::string& path);

/// How a command writes to a repository. Exactly one member is set.
struct WriteAccess {
  std::unique_ptr<Repository> repository;  ///< The command's own repository.
  std::optional<control::Client> daemon;   ///< The daemon that has it mounted.
};

/// Opens a repository for writing, or connects to the daemon that writes to it.
/// Errors: kLocked if the writing process takes no requests, such as another command.
[[nodiscard]] Result<WriteAccess> open_or_reach(const std::string& path);

/// Closes the repository and passes on `made`, or the error of the closing if `made` is none.
[[nodiscard]] Result<VersionInfo> close_after(Repository& repository, Result<VersionInfo> made);

}  // namespace varve::cli

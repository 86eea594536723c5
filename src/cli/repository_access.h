// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/client.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// Whether VARVE_TRUST, a list of paths with colons between them, has this repository.
[[nodiscard]] bool is_trusted(const std::string& path);

/// For commands that only look: works beside a process that writes.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_read(const std::string& path,
                                                               bool probe_catalog = false);
/// Waits for a daemon that is ending. kLocked where another process writes, a daemon perhaps.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_write(const std::string& path);

/// How a command writes to a repository: one of the two is set.
struct WriteAccess {
  std::unique_ptr<Repository> repository;  ///< Its own.
  std::optional<control::Client> daemon;   ///< Or the daemon that has it mounted.
};

/// kLocked where a process writes that takes no requests, such as another command.
[[nodiscard]] Result<WriteAccess> open_or_reach(const std::string& path);

}  // namespace varve::cli

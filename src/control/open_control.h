// SPDX-License-Identifier: Apache-2.0
// Decides whether a command changes a repository in its own process or through the daemon that has
// the repository mounted.
#pragma once

#include <memory>
#include <string>

#include "control/lock_wait.h"
#include "control/repository_control.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::control {

/// Opens a repository for changes. Takes the lock and opens the repository in the calling process;
/// if another process has the lock, waits as `wait` says, or connects to the daemon there.
/// With OpenOptions::read_only, takes no lock: opens the repository for reading, and connects to
/// the daemon if a daemon answers.
/// Calls LockWait::prepare once with OpenOptions::read_only, and again before connecting.
/// With OpenOptions::encrypted_only, the key of the options must fit, even if a daemon makes the
/// key unnecessary.
/// Errors: kWrongKey; kLocked if the process with the lock takes no requests of the caller, such as
/// another command or another user's daemon; otherwise the errors of LockWait::prepare,
/// Repository::open() and Client::connect().
[[nodiscard]] Result<std::unique_ptr<RepositoryControl>> open_control(const std::string& path,
                                                                      const OpenOptions& options,
                                                                      const LockWait& wait = {});

}  // namespace varve::control

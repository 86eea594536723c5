// SPDX-License-Identifier: Apache-2.0
// Decides whether a command changes a repository itself or asks the daemon that has it mounted.
#pragma once

#include <memory>
#include <string>

#include "control/lock_wait.h"
#include "control/repository_control.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::control {

/// Opens a repository to change it. Takes the lock and opens the repository here; if another
/// process has the lock, waits as `wait` says, or connects to the daemon there.
/// With OpenOptions::read_only it takes no lock: it connects to a daemon that answers, and
/// otherwise only reads the repository here.
/// Calls LockWait::prepare once with OpenOptions::read_only.
/// A key that OpenOptions name must fit, also where the daemon needs none.
/// Errors: kWrongKey; kLocked if the process with the lock takes no requests, such as another
/// command; otherwise those of Repository::open() and Client::connect().
[[nodiscard]] Result<std::unique_ptr<RepositoryControl>> open_control(const std::string& path,
                                                                      const OpenOptions& options,
                                                                      const LockWait& wait = {});

}  // namespace varve::control

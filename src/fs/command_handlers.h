// SPDX-License-Identifier: Apache-2.0
// Answers the requests of commands to a mount's daemon.
#pragma once

#include "control/server.h"
#include "fs/version_commands.h"
#include "varve/repository.h"

namespace varve::fs {

/// Adds the handlers of all requests to the repository. Lifetime: `repository` and `commands` must
/// outlive the handlers.
void add_command_handlers(Repository& repository, VersionCommands& commands,
                          control::Handlers& handlers);

}  // namespace varve::fs

// SPDX-License-Identifier: Apache-2.0
// Applies what this machine and its user say about repositories.
#pragma once

#include "varve/options.h"

namespace varve::control {

/// The environment variable that stands for the option --accept-older, if it is not empty.
inline constexpr const char* kAcceptOlderVariable = "VARVE_ACCEPT_OLDER";

/// Sets the options about this machine's memory of repositories and about object stores. The folder
/// is $XDG_STATE_HOME/varve; otherwise /var/lib/varve for root and ~/.local/state/varve for other
/// users, where ~ is home_folder(); otherwise none. Accepts an older repository if the environment
/// says so. Reaches object stores as the environment and the files of AWS say.
void use_client_state(OpenOptions& options);

}  // namespace varve::control

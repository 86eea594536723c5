// SPDX-License-Identifier: Apache-2.0
// Applies the settings of the local machine and the user to the options for opening a repository.
#pragma once

#include "varve/options.h"

namespace varve::control {

/// The environment variable for the option --accept-older. A value other than "" sets the option.
inline constexpr const char* kAcceptOlderVariable = "VARVE_ACCEPT_OLDER";

/// Sets the options about object stores and about the folder that remembers repositories. The
/// folder is $XDG_STATE_HOME/varve; otherwise /var/lib/varve for root and ~/.local/state/varve for
/// other users, where ~ is home_folder(); otherwise none. Accepts an older repository if
/// kAcceptOlderVariable is set. Takes the access to object stores from the environment and the
/// files of AWS.
void use_client_state(OpenOptions& options);

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
#include "control/client_state.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "control/home_folder.h"
#include "control/store_access.h"

namespace varve::control {
namespace {

constexpr const char* kRootFolder = "/var/lib/varve";

/// Returns the value of an environment variable if the value is an absolute path; otherwise "".
std::string path_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value == '/' ? std::string(value) : std::string();
}

// Root has a single folder: services have no home, and `sudo` may keep the home of another user.
std::string state_folder() {
  if (const auto state = path_variable("XDG_STATE_HOME"); !state.empty()) return state + "/varve";
  if (::geteuid() == 0) return kRootFolder;
  const auto home = home_folder(::geteuid());
  return home.empty() ? std::string() : home + "/.local/state/varve";
}

}  // namespace

void use_client_state(OpenOptions& options) {
  options.memory_folder = state_folder();
  options.store.access = store_access_of_environment();
  const char* const accepts = std::getenv(kAcceptOlderVariable);
  options.accept_older = options.accept_older || (accepts != nullptr && *accepts != '\0');
}

}  // namespace varve::control

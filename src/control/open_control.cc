// SPDX-License-Identifier: Apache-2.0
#include "control/open_control.h"

#include <utility>

#include "control/client.h"
#include "control/local_control.h"
#include "control/lock_wait.h"
#include "control/remote_control.h"

namespace varve::control {
namespace {

using Control = std::unique_ptr<RepositoryControl>;

Result<Control> control_to_read(const std::string& path, const OpenOptions& options) {
  VARVE_TRY_ASSIGN(auto repository, Repository::open(path, options));
  auto client = Client::connect(path);
  if (!client) return Control(std::make_unique<LocalControl>(std::move(repository)));
  return Control(std::make_unique<RemoteControl>(RemoteControl::Place{path, options},
                                                 *std::move(client), std::move(repository)));
}

}  // namespace

Result<Control> open_control(const std::string& path, const OpenOptions& options) {
  if (options.read_only) return control_to_read(path, options);
  auto repository = open_when_unlocked(path, [&] { return Repository::open(path, options); });
  if (repository) return Control(std::make_unique<LocalControl>(*std::move(repository)));
  if (repository.error().code() != ErrorCode::kLocked) return std::move(repository).error();
  auto client = Client::connect(path);
  if (client) {
    return Control(
        std::make_unique<RemoteControl>(RemoteControl::Place{path, options}, *std::move(client)));
  }
  // Without a daemon, the lock's error says the reason.
  if (client.error().code() == ErrorCode::kNotFound) return std::move(repository).error();
  return std::move(client).error();
}

}  // namespace varve::control

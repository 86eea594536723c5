// SPDX-License-Identifier: Apache-2.0
#include "control/open_control.h"

#include <utility>

#include "control/client.h"
#include "control/local_control.h"
#include "control/remote_control.h"
#include "varve/encryption.h"
#include "varve/keys.h"

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

// A daemon needs no key. But a key named by the user must fit, and the repository must be
// encrypted: otherwise the user means another repository.
Result<void> check_given_key(const std::string& path, const OpenOptions& options) {
  if (!options.encrypted_only) return {};
  VARVE_TRY_ASSIGN(const auto encryption, read_encryption(path, options.trust_owner));
  if (!encryption) {
    return Error(ErrorCode::kWrongKey,
                 "a key is given, but " + path +
                     " is plain: it would store new data in the clear. Give no key, unless this "
                     "should be an encrypted repository");
  }
  VARVE_TRY_ASSIGN(const auto key, options.key());
  return check_key(path, key, options.trust_owner);
}

}  // namespace

Result<Control> open_control(const std::string& path, const OpenOptions& options,
                             const LockWait& wait) {
  if (options.read_only) {
    if (wait.prepare) VARVE_TRY(wait.prepare());
    return control_to_read(path, options);
  }
  auto repository = open_when_unlocked(path, wait, [&] { return Repository::open(path, options); });
  if (repository) return Control(std::make_unique<LocalControl>(*std::move(repository)));
  if (repository.error().code() != ErrorCode::kLocked) return std::move(repository).error();
  // The facts of the command must precede the daemon's work, and may be out of reach beside a
  // writer.
  if (wait.prepare) VARVE_TRY(wait.prepare());
  auto client = Client::connect(path);
  if (client) {
    VARVE_TRY(check_given_key(path, options));
    return Control(
        std::make_unique<RemoteControl>(RemoteControl::Place{path, options}, *std::move(client)));
  }
  // Without a daemon, the lock's error says the reason.
  if (client.error().code() == ErrorCode::kNotFound) return std::move(repository).error();
  if (client.error().code() == ErrorCode::kNotPermitted) {
    return std::move(repository).error().with_more(". " + client.error().message());
  }
  return std::move(client).error();
}

}  // namespace varve::control

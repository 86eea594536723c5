// SPDX-License-Identifier: Apache-2.0
#include "control/lock_wait.h"

#include "control/client.h"

namespace varve::control {

bool holder_may_be_ending(const std::string& repository) {
  const auto client = Client::connect(repository);
  if (client) return client->identity().mount_device == 0;
  // kIo: the daemon ended during the request.
  return client.error().code() == ErrorCode::kNotFound || client.error().code() == ErrorCode::kIo;
}

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
// How to reach an S3-compatible object store.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "varve/encryption.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// The credentials of a store's user.
struct StoreCredentials {
  std::string access_key_id{};         ///< The name of the key; not secret.
  Secret secret_access_key{};          ///< Signs requests, and is never sent.
  std::string session_token{};         ///< Empty for credentials that do not expire.
  std::optional<Timestamp> expires{};  ///< The time from which on the store refuses them, if known.
};

/// Returns credentials. A repository calls it when it opens the store, from a thread of its own,
/// and again before the credentials expire or after the store called them expired.
/// Errors: kNotPermitted without credentials; any other error ends the operation.
using CredentialSource = std::function<Result<StoreCredentials>()>;

struct ObjectStoreOptions {
  /// "https://HOST" or "https://HOST:PORT"; empty for AWS. With "http://", requests and data are
  /// not encrypted on their way.
  std::string endpoint{};
  std::string region{};            ///< Empty for "us-east-1", or the one that the store names.
  CredentialSource credentials{};  ///< Must be set.
  std::string ca_file{};           ///< Certificates to trust instead of the system's, if set.
};

}  // namespace varve

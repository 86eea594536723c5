// SPDX-License-Identifier: Apache-2.0
// How to reach an S3-compatible object store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "varve/encryption.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// The credentials of a store's user.
struct StoreCredentials {
  std::string access_key_id{};  ///< The name of the key; not secret.
  Secret secret_access_key{};   ///< Signs requests, and is never sent.
  std::string session_token{};  ///< Empty for credentials without an end.
  /// The time when the store begins to refuse the credentials, if known.
  std::optional<Timestamp> expires{};
};

/// Returns credentials. A repository calls the source from a separate thread when opening the
/// store, and again before the credentials expire or after the store reports expired credentials.
/// Errors: kNotPermitted without credentials; any other error ends the operation.
using CredentialSource = std::function<Result<StoreCredentials>()>;

struct ObjectStoreOptions {
  /// "https://HOST" or "https://HOST:PORT"; empty for AWS. With "http://", requests and data are
  /// not encrypted in transit.
  std::string endpoint{};
  std::string region{};            ///< Empty for "us-east-1", or the region named by the store.
  CredentialSource credentials{};  ///< Must be set.
  std::string ca_file{};           ///< Certificates to trust instead of the system's, if set.
};

/// The object store of a repository, and access to the store. Never includes a key.
struct StorePlace {
  std::string place{};     ///< s3://BUCKET/PREFIX.
  std::string endpoint{};  ///< URL of the store; empty for the environment's URL.
  std::string region{};    ///< Empty for the environment's region.
  /// Storage class of volumes, such as STANDARD_IA; empty for the store's default. Only for
  /// create_in_store().
  std::string volume_class{};
  /// Size of the store's data cached on the folder's disk, in bytes; nullopt for the default.
  std::optional<std::uint64_t> cache_bytes{};
  /// Bytes of sealed data waiting for the store before further seals wait; nullopt for the default.
  std::optional<std::uint64_t> staging_bytes{};
};

/// Returns the endpoint and credentials of a store. Called from any thread.
using StoreAccess = std::function<Result<ObjectStoreOptions>(const StorePlace& place)>;

/// The state of a repository being closed while the store still lacks data.
struct StoreWait {
  std::string place{};           ///< s3://BUCKET/PREFIX.
  std::uint64_t bytes_sent = 0;  ///< Bytes sent to the store since the opening.
};

/// A process's use of the object store of an opened repository.
struct StoreUse {
  StoreAccess access{};  ///< Without it, no store can be opened.
  /// Whether closing the repository replicates sealed data, and waits for the store.
  bool waits = true;
  /// Called about five times a second from another thread while closing waits for the store, if
  /// set. Once the function returns false, closing ends with kInterrupted.
  std::function<bool(const StoreWait& wait)> waiting{};
};

}  // namespace varve

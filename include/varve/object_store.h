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

/// The object store of a repository, and how to reach it. A key is never a part of it.
struct StorePlace {
  std::string place{};     ///< s3://BUCKET/PREFIX.
  std::string endpoint{};  ///< URL of the store; empty for that of the environment.
  std::string region{};    ///< Empty for that of the environment.
  /// Storage class of volumes, such as STANDARD_IA; empty for the store's default. Only for
  /// create_in_store().
  std::string volume_class{};
  /// Bytes of data in the store that the folder keeps on its disk; nullopt for the default.
  std::optional<std::uint64_t> cache_bytes{};
  /// Bytes of sealed data that may wait for the store before further seals wait; nullopt for the
  /// default.
  std::optional<std::uint64_t> staging_bytes{};
};

/// Returns how to reach a store, with its credentials. Called from any thread.
using StoreAccess = std::function<Result<ObjectStoreOptions>(const StorePlace& place)>;

/// The state of a repository that is being closed, while the store does not have all of it yet.
struct StoreWait {
  std::string place{};           ///< s3://BUCKET/PREFIX.
  std::uint64_t bytes_sent = 0;  ///< Bytes that were sent to the store since the opening.
};

/// How a process that opens a repository uses the repository's object store.
struct StoreUse {
  StoreAccess access{};  ///< Without it, no store can be opened.
  /// Whether closing the repository replicates what is sealed, and waits for the store.
  bool waits = true;
  /// Called about five times a second from another thread while closing waits for the store, if
  /// set. Closing ends with kInterrupted once it returns false.
  std::function<bool(const StoreWait& wait)> waiting{};
};

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
// Finds the address and the credentials of an object store.
#pragma once

#include <string>

#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::control {

/// A user's settings for a store. Unset values come from the environment and from the files of AWS.
struct StoreAccess {
  std::string endpoint{};  ///< As ObjectStoreOptions::endpoint.
  std::string region{};
  std::string profile{};  ///< A section of the files of AWS; otherwise AWS_PROFILE or "default".
  std::string credentials_command{};  ///< A command of the shell that prints credentials as JSON.
};

/// Returns how to reach a store. The first of these places counts, for each value:
/// `access`; the environment (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION,
/// AWS_DEFAULT_REGION, AWS_CA_BUNDLE); the profile in ~/.aws/config or AWS_CONFIG_FILE
/// (endpoint_url, region, ca_bundle).
///
/// Credentials come from the command; from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
/// AWS_SESSION_TOKEN; from the profile in ~/.aws/credentials or AWS_SHARED_CREDENTIALS_FILE, and in
/// ~/.aws/config; or from the command credential_process of that profile. Files and commands are
/// read each time that the store needs credentials.
/// Errors: kNotFound if a profile was named that no file has; those of reading a file.
[[nodiscard]] Result<ObjectStoreOptions> object_store_options(const StoreAccess& access);

/// The environment variable with a command that prints credentials, as credentials_command.
inline constexpr const char* kCredentialsCommandVariable = "VARVE_CREDENTIALS_COMMAND";
/// Returns how to reach stores as the environment and the files of AWS say.
[[nodiscard]] varve::StoreAccess store_access_of_environment();

/// Returns the credentials in the JSON that a credential_process prints: Version 1, AccessKeyId,
/// SecretAccessKey, and optionally SessionToken and Expiration.
/// Errors: kInvalid for any other text.
[[nodiscard]] Result<StoreCredentials> parse_credentials(const Secret& json);

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
// Signatures of requests: AWS Signature Version 4 with the header Authorization.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "varve/object_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::bucket {

/// Names and values, for example of headers (names in lower case) and of a query. Not encoded.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// Returns the SHA-256 of the consecutive parts, as 64 hexadecimal digits.
/// Errors: kIo if OpenSSL fails.
[[nodiscard]] Result<std::string> sha256_hex(std::span<const std::span<const std::byte>> parts);
/// Returns the MD5 of the parts in Base64, for the header Content-MD5; empty if OpenSSL has no MD5.
[[nodiscard]] std::string md5_base64(std::span<const std::span<const std::byte>> parts);

/// Returns the text with each byte except A-Z, a-z, 0-9, "-", ".", "_" and "~" as %XX, and "/" too
/// unless `keeps_slash`.
[[nodiscard]] std::string uri_encode(std::string_view text, bool keeps_slash);
/// Returns the query in the signed and sent form: ascending by encoded name, without "?".
[[nodiscard]] std::string query_text(const Fields& query);
/// Returns "20130524T000000Z".
[[nodiscard]] std::string signing_time(const Timestamp& time);

/// A request in the form covered by the signature.
struct SignedParts {
  std::string method{};
  std::string path{};  ///< "/" and the object's name; not encoded.
  Fields query{};
  Fields headers{};  ///< All signed headers: with host, x-amz-date and x-amz-content-sha256.
  std::string payload_sha256{};
};

/// Returns the value of the header Authorization. The request's x-amz-date must be `time`.
/// Source: "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API Reference.
/// Errors: kIo if OpenSSL fails.
[[nodiscard]] Result<std::string> authorization(const SignedParts& request,
                                                const StoreCredentials& credentials,
                                                const std::string& region, const Timestamp& time);

}  // namespace varve::bucket

// SPDX-License-Identifier: Apache-2.0
// The addresses of a bucket's objects.
#pragma once

#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve::bucket {

/// The address of a bucket. With an endpoint, the bucket is the first part of each path. Without an
/// endpoint, the bucket is the first part of AWS's host name for the region, unless the bucket's
/// name has dots, which certificates do not cover.
class Endpoint {
 public:
  /// `endpoint` is "http[s]://HOST[:PORT]" or empty. Errors: kInvalid with advice.
  [[nodiscard]] static Result<Endpoint> parse(std::string_view endpoint, std::string bucket);

  /// Returns "HOST" or "HOST:PORT", the value of the header Host.
  [[nodiscard]] std::string host(const std::string& region) const;
  /// Returns the path of an object, or of the bucket for an empty key; not encoded.
  [[nodiscard]] std::string path(const std::string& key) const;
  /// Returns "https" or "http".
  [[nodiscard]] const std::string& scheme() const { return scheme_; }

 private:
  Endpoint() = default;

  std::string scheme_;
  std::string host_;  // Empty for AWS.
  std::string bucket_;
  bool is_in_path_ = true;
};

}  // namespace varve::bucket

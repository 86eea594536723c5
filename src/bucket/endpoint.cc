// SPDX-License-Identifier: Apache-2.0
#include "bucket/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace varve::bucket {
namespace {

constexpr std::size_t kHostBytesMax = 255;

// Accepts names, IPv4 addresses and [IPv6 addresses], with or without a port.
bool is_host(std::string_view text) {
  if (text.empty() || text.size() > kHostBytesMax) return false;
  std::string_view name = text;
  const auto colon = text.rfind(':');
  if (colon != std::string_view::npos && !text.ends_with(']')) {
    const auto port = text.substr(colon + 1);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, is_digit)) return false;
    name = text.substr(0, colon);
  }
  const bool is_ipv6 = name.starts_with('[') && name.ends_with(']') && name.size() > 2;
  if (is_ipv6) name = name.substr(1, name.size() - 2);
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ||
           (is_ipv6 && c == ':');
  });
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view endpoint, std::string bucket) {
  Endpoint parsed;
  parsed.bucket_ = std::move(bucket);
  if (endpoint.empty()) {
    parsed.scheme_ = "https";
    parsed.is_in_path_ = parsed.bucket_.find('.') != std::string::npos;
    return parsed;
  }
  auto rest = endpoint;
  for (const std::string_view scheme : {"https", "http"}) {
    if (rest.starts_with(scheme) && rest.substr(scheme.size()).starts_with("://")) {
      parsed.scheme_ = scheme;
      rest.remove_prefix(scheme.size() + 3);
      break;
    }
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (parsed.scheme_.empty() || !is_host(rest)) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{}: the endpoint of an object store is https://HOST or "
                             "https://HOST:PORT (http:// sends everything unencrypted)",
                             endpoint));
  }
  parsed.host_ = rest;
  return parsed;
}

std::string Endpoint::host(const std::string& region) const {
  if (!host_.empty()) return host_;
  const auto store =
      fmt::format("s3.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  return is_in_path_ ? store : bucket_ + "." + store;
}

std::string Endpoint::path(const std::string& key) const {
  if (!is_in_path_) return "/" + key;
  return key.empty() ? "/" + bucket_ : "/" + bucket_ + "/" + key;
}

}  // namespace varve::bucket

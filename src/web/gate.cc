// SPDX-License-Identifier: Apache-2.0
#include "web/gate.h"

#include <algorithm>
#include <utility>

#include "base/random_bytes.h"

namespace varve::web {
namespace {

/// Returns true if the header Host names the loopback interface, with any port or none: a tunnel
/// may have another port than the server.
bool names_loopback(std::string_view host) {
  std::string_view name = host;
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && !host.ends_with(']');
  if (has_port) {
    name = host.substr(0, colon);
    const std::string_view port = host.substr(colon + 1);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (port.empty() || !std::ranges::all_of(port, is_digit)) return false;
  }
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

}  // namespace

Result<std::string> make_token() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<32>());
  std::string token;
  for (const std::byte byte : random) {
    token += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    token += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return token;
}

bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i] ^ other);
  }
  return difference == 0;
}

Gate::Gate(std::string token, std::uint16_t port)
    : token_(std::move(token)), cookie_name_("varve-" + std::to_string(port)) {}

Gate::Verdict Gate::judge(const Request& request) const {
  if (!names_loopback(request.host)) return Verdict::kForeignHost;
  const std::string* const given = request.find("token");
  if (given != nullptr) {
    return equal_in_constant_time(*given, token_) ? Verdict::kExchange : Verdict::kNoToken;
  }
  std::string_view rest = request.cookies;
  bool admitted = false;
  while (!rest.empty()) {
    std::string_view cookie = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(cookie.size() + 1, rest.size()));
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (!cookie.starts_with(cookie_name_)) continue;
    cookie.remove_prefix(cookie_name_.size());
    if (!cookie.starts_with('=')) continue;
    admitted |= equal_in_constant_time(cookie.substr(1), token_);
  }
  return admitted ? Verdict::kAdmitted : Verdict::kNoToken;
}

std::string Gate::cookie() const {
  return cookie_name_ + "=" + token_ + "; Path=/; HttpOnly; SameSite=Strict";
}

}  // namespace varve::web

// SPDX-License-Identifier: Apache-2.0
#include "web/gate.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "base/random_bytes.h"
#include "crypto/authentic.h"

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

Result<std::string> make_secret() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<32>());
  std::string secret;
  for (const std::byte byte : random) {
    secret += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    secret += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return secret;
}

bool is_secret(std::string_view given, std::string_view secret) {
  return crypto::is_authentic(base::as_bytes(given), base::as_bytes(secret));
}

}  // namespace

Result<GateSecrets> make_secrets() {
  GateSecrets secrets;
  VARVE_TRY_ASSIGN(secrets.token, make_secret());
  VARVE_TRY_ASSIGN(secrets.folder, make_secret());
  VARVE_TRY_ASSIGN(secrets.session, make_secret());
  return secrets;
}

Gate::Gate(GateSecrets secrets, std::uint16_t port)
    : secrets_(std::move(secrets)),
      home_("/" + secrets_.folder + "/"),
      cookie_name_("varve-" + std::to_string(port)) {}

Gate::Verdict Gate::judge(const Request& request) const {
  if (!names_loopback(request.host)) return Verdict::kForeignHost;
  const std::string* const given = request.find("token");
  if (given != nullptr) {
    return is_secret(*given, secrets_.token) ? Verdict::kExchange : Verdict::kRefused;
  }
  const bool is_inside = is_secret(std::string_view(request.path).substr(0, home_.size()), home_);
  return is_inside && has_cookie(request) ? Verdict::kAdmitted : Verdict::kRefused;
}

bool Gate::has_cookie(const Request& request) const {
  std::string_view rest = request.cookies;
  bool found = false;
  while (!rest.empty()) {
    std::string_view cookie = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(cookie.size() + 1, rest.size()));
    while (cookie.starts_with(' ')) cookie.remove_prefix(1);
    if (!cookie.starts_with(cookie_name_)) continue;
    cookie.remove_prefix(cookie_name_.size());
    if (!cookie.starts_with('=')) continue;
    found |= is_secret(cookie.substr(1), secrets_.session);
  }
  return found;
}

Request Gate::inside(Request admitted) const {
  admitted.path.erase(0, home_.size() - 1);
  return admitted;
}

std::string Gate::cookie() const {
  return cookie_name_ + "=" + secrets_.session + "; Path=" + home_ + "; HttpOnly; SameSite=Strict";
}

}  // namespace varve::web

// SPDX-License-Identifier: Apache-2.0
// Admits or refuses requests.
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"
#include "web/request.h"

namespace varve::web {

/// The secrets of a run of the server: 32 random bytes each, as hexadecimal digits.
struct GateSecrets {
  std::string token;    ///< Part of the printed address.
  std::string folder;   ///< First part of the path of each page.
  std::string session;  ///< Value of the cookie.
};
/// Returns new secrets. Errors: kIo if the system has no random numbers.
[[nodiscard]] Result<GateSecrets> make_secrets();

/// Admits requests from the local machine that present the secrets. Thread-safe.
///
/// The printed address has the token in the query. The first request exchanges the token for two
/// more secrets: a cookie, not readable by scripts and not sent by pages of foreign sites, and a
/// folder for all pages. A request needs both. Browsers send a cookie to every port of a host, but
/// the gate's cookie only to paths in the folder, and the server of another port does not know the
/// folder. The address of a page, as kept in a history or a link, opens nothing without the cookie.
/// The header Host must name the loopback interface: a foreign name resolved to the loopback
/// interface gets no answer.
class Gate {
 public:
  Gate(GateSecrets secrets, std::uint16_t port);

  enum class Verdict {
    kAdmitted,
    kExchange,     ///< Answer with the cookie, and send the browser to home().
    kForeignHost,  ///< The header Host names another machine.
    kRefused,      ///< The request has neither the token nor the folder and the cookie.
  };
  [[nodiscard]] Verdict judge(const Request& request) const;
  /// Returns an admitted request with the path inside the folder: "/" for home().
  [[nodiscard]] Request inside(Request admitted) const;

  /// Returns the value of the header Set-Cookie.
  [[nodiscard]] std::string cookie() const;
  /// Returns the path of the first page.
  [[nodiscard]] const std::string& home() const { return home_; }
  [[nodiscard]] const std::string& token() const { return secrets_.token; }

 private:
  [[nodiscard]] bool has_cookie(const Request& request) const;

  const GateSecrets secrets_;
  const std::string home_;
  const std::string cookie_name_;
};

}  // namespace varve::web

// SPDX-License-Identifier: Apache-2.0
// Decides which requests may be answered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "web/request.h"

namespace varve::web {

/// Returns 32 random bytes as hexadecimal digits.
/// Errors: kIo if the system has no random numbers.
[[nodiscard]] Result<std::string> make_token();

/// Returns true if both texts are equal. The time depends on the length of `given` alone.
[[nodiscard]] bool equal_in_constant_time(std::string_view given, std::string_view secret);

/// Admits requests of this machine that know the token. Thread-safe.
///
/// The printed address has the token in its query. The first request exchanges it for a cookie that
/// no script reads and no other site's page sends, so the token stays in no history and no link.
/// The header Host must name the loopback interface: a foreign name that is made to resolve to it
/// gets no answer.
class Gate {
 public:
  Gate(std::string token, std::uint16_t port);

  enum class Verdict {
    kAdmitted,
    kExchange,     ///< Answer with the cookie, and send the browser to the same page without token.
    kForeignHost,  ///< The header Host names another machine.
    kNoToken,      ///< Neither the query nor a cookie has the token.
  };
  [[nodiscard]] Verdict judge(const Request& request) const;

  /// Returns the value of the header Set-Cookie.
  [[nodiscard]] std::string cookie() const;
  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  const std::string token_;
  const std::string cookie_name_;  // Has the port: browsers share cookies between ports.
};

}  // namespace varve::web

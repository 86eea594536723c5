// SPDX-License-Identifier: Apache-2.0
// The answer to one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "varve/result.h"

namespace varve::web {

/// Headers of an answer beside those that every answer has.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// Writes the answer to one request to its connection. Not thread-safe.
///
/// Every answer forbids the browser to guess its type, to store it, to show it in a frame and to
/// run anything but the page's own script. Each write fails once the browser has taken no byte for
/// half a minute.
/// Errors of each function: kIo if the browser is gone; kBusy if it takes no data.
class Exchange {
 public:
  /// Lifetime: `socket` must stay open.
  Exchange(int socket, bool is_head) : socket_(socket), is_head_(is_head) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Answers with a whole body.
  [[nodiscard]] Result<void> send(unsigned status, const std::string& type, std::string_view body,
                                  const Headers& headers = {});
  /// Answers with a short text.
  [[nodiscard]] Result<void> send_text(unsigned status, const std::string& text,
                                       const Headers& headers = {});

  /// Begins an answer whose body follows by write(). Without `bytes`, the browser learns of the end
  /// by end(), and takes an answer without it for broken.
  [[nodiscard]] Result<void> begin(unsigned status, const std::string& type,
                                   std::optional<std::uint64_t> bytes, const Headers& headers);
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> end();

  /// Returns true if begin() or send() was called.
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  /// Returns true if the answer has no body, as the request asked.
  [[nodiscard]] bool is_head() const { return is_head_; }

 private:
  [[nodiscard]] Result<void> put(std::string_view bytes);

  const int socket_;
  const bool is_head_;
  bool has_begun_ = false;
  bool is_chunked_ = false;
};

/// Returns the value of Content-Disposition for a download. Only the form of RFC 5987 has bytes
/// other than plain letters, so a name cannot end the header.
[[nodiscard]] std::string attachment(std::string_view name);

}  // namespace varve::web

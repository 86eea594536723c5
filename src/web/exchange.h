// SPDX-License-Identifier: Apache-2.0
// The answer to a request.
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

/// Headers of an answer besides the headers common to all answers.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// Writes the answer to a request to the connection. Not thread-safe.
///
/// Every answer forbids the browser to guess the answer's type, to store the answer, to show the
/// answer in a frame and to run anything but the page's own script. Each write fails once the
/// browser has taken no byte for half a minute.
/// Errors of each function: kIo if the browser is gone; kBusy if the browser takes no data.
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
  /// by end(), and treats an answer without end() as broken.
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
/// besides plain letters, so a name cannot end the header.
[[nodiscard]] std::string attachment(std::string_view name);

}  // namespace varve::web

// SPDX-License-Identifier: Apache-2.0
// Requests of browsers. request.cc is the only file with the HTTP parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace varve::web {

/// Maximum number of bytes in a request: the request line and the headers.
inline constexpr std::size_t kRequestBytesMax = 16384;

/// A range of bytes of a file, both ends included.
struct WantedRange {
  std::optional<std::uint64_t> first;  ///< Nothing: the last `last` bytes.
  std::optional<std::uint64_t> last;   ///< Nothing: to the end.
};

/// A GET or HEAD request.
struct Request {
  bool is_head = false;
  std::string path;                          ///< Decoded; begins with a slash.
  std::map<std::string, std::string> query;  ///< Decoded names and values.
  std::string host;                          ///< The header Host.
  std::string cookies;                       ///< All headers Cookie, joined by "; ".
  std::optional<WantedRange> range;          ///< The only range of a header Range.

  /// Returns a value of the query, or nullptr.
  [[nodiscard]] const std::string* find(const std::string& name) const;
};

/// The result of parse_request().
struct ParsedRequest {
  std::optional<Request> request;
  /// The HTTP status of the answer to a bad request. 0 without a request: more bytes are needed.
  unsigned status = 0;
};

/// Parses the bytes received so far by a connection.
[[nodiscard]] ParsedRequest parse_request(std::string_view bytes);

/// Returns `text` with each %XX replaced by a byte; nothing if a % has no two digits behind the %.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);
/// Returns `text` with all bytes but letters, digits and -._~ as %XX.
[[nodiscard]] std::string percent_encode(std::string_view text);

/// Parses the value of a header Range. Returns nothing for units except bytes, for several ranges
/// and for an invalid range: the answer is then the whole file.
[[nodiscard]] std::optional<WantedRange> parse_range(std::string_view text);

}  // namespace varve::web

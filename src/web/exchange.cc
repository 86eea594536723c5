// SPDX-License-Identifier: Apache-2.0
#include "web/exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>

#include "base/system_error.h"
#include "web/request.h"

namespace varve::web {
namespace {

constexpr int kStallMs = 30000;

const char* reason_of(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 416:
      return "Range Not Satisfiable";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

// The page's files come from the server itself, and nothing else is loaded, run, framed or posted.
constexpr std::string_view kCommonHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<void> Exchange::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return base::io_error("the browser", errno);
    struct pollfd wait = {socket_, POLLOUT, 0};
    const int ready = ::poll(&wait, 1, kStallMs);
    if (ready < 0 && errno != EINTR) return base::io_error("the browser", errno);
    if (ready == 0) return Error(ErrorCode::kBusy, "the browser takes no data");
  }
  return {};
}

Result<void> Exchange::begin(unsigned status, const std::string& type,
                             std::optional<std::uint64_t> bytes, const Headers& headers) {
  has_begun_ = true;
  is_chunked_ = !bytes;
  std::string head = "HTTP/1.1 " + std::to_string(status) + " " + reason_of(status) + "\r\n";
  head += "Content-Type: " + type + "\r\n";
  head += bytes ? "Content-Length: " + std::to_string(*bytes) : "Transfer-Encoding: chunked";
  head += "\r\n";
  head += kCommonHeaders;
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  return put(head + "\r\n");
}

Result<void> Exchange::write(std::span<const std::byte> bytes) {
  if (is_head_ || bytes.empty()) return {};
  if (!is_chunked_) return put(text_of(bytes));
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  VARVE_TRY(put(size));
  VARVE_TRY(put(text_of(bytes)));
  return put("\r\n");
}

Result<void> Exchange::end() {
  if (is_head_ || !is_chunked_) return {};
  return put("0\r\n\r\n");
}

Result<void> Exchange::send(unsigned status, const std::string& type, std::string_view body,
                            const Headers& headers) {
  VARVE_TRY(begin(status, type, body.size(), headers));
  return write(std::as_bytes(std::span(body)));
}

Result<void> Exchange::send_text(unsigned status, const std::string& text, const Headers& headers) {
  return send(status, "text/plain; charset=utf-8", text + "\n", headers);
}

std::string attachment(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
    plain += safe ? c : '_';
  }
  return "attachment; filename=\"" + plain + "\"; filename*=UTF-8''" + percent_encode(name);
}

}  // namespace varve::web

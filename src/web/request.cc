// SPDX-License-Identifier: Apache-2.0
#include "web/request.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>
#include <utility>

namespace varve::web {
namespace {

namespace http = boost::beast::http;

std::string text_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Sets path and query. Returns false if they are malformed.
bool parse_target(std::string_view target, Request& request) {
  if (target.empty() || target.front() != '/') return false;
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  auto path = percent_decode(target.substr(0, mark));
  if (!path) return false;
  request.path = std::move(*path);
  if (mark == std::string_view::npos) return true;
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals));
    auto value = percent_decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (!name || !value) return false;
    if (!request.query.emplace(std::move(*name), std::move(*value)).second) return false;
  }
  return true;
}

unsigned status_of(const boost::system::error_code& error) {
  constexpr unsigned kBadRequest = 400;
  constexpr unsigned kHeadersTooLarge = 431;
  constexpr unsigned kBodyTooLarge = 413;
  if (error == http::error::header_limit) return kHeadersTooLarge;
  return error == http::error::body_limit ? kBodyTooLarge : kBadRequest;
}

}  // namespace

const std::string* Request::find(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? nullptr : &found->second;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto high = digit_of(text[i + 1]);
    const auto low = digit_of(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded += static_cast<char>(*high << 4 | *low);
    i += 2;
  }
  return decoded;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

std::optional<WantedRange> parse_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes=";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = text.substr(dash + 1);
  if (first.empty() && last.empty()) return std::nullopt;
  WantedRange range{number_of(first), number_of(last)};
  if (!first.empty() && !range.first) return std::nullopt;
  if (!last.empty() && !range.last) return std::nullopt;
  if (range.first && range.last && *range.last < *range.first) return std::nullopt;
  return range;
}

ParsedRequest parse_request(std::string_view bytes) {
  constexpr unsigned kMethodNotAllowed = 405;
  constexpr unsigned kBodyTooLarge = 413;
  constexpr unsigned kOldVersion = 505;
  constexpr unsigned kHttp11 = 11;
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kRequestBytesMax);
  parser.body_limit(0);
  boost::system::error_code error;
  // Once the headers are complete, the parser stops: no request here has a body.
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::need_more && bytes.size() < kRequestBytesMax) return {};
  if (error == http::error::need_more) error = http::error::header_limit;
  if (error) return {.request = std::nullopt, .status = status_of(error)};
  const auto& head = parser.get();
  if (head.version() != kHttp11) return {.request = std::nullopt, .status = kOldVersion};
  if (head.method() != http::verb::get && head.method() != http::verb::head) {
    return {.request = std::nullopt, .status = kMethodNotAllowed};
  }
  if (parser.chunked() || parser.content_length().value_or(0) != 0) {
    return {.request = std::nullopt, .status = kBodyTooLarge};
  }
  ParsedRequest parsed{.request = Request{}, .status = 0};
  Request& request = *parsed.request;
  request.is_head = head.method() == http::verb::head;
  const bool one_host = head.count(http::field::host) == 1;
  if (!one_host || !parse_target(text_of(head.target()), request)) {
    return {.request = std::nullopt, .status = status_of(http::error::bad_target)};
  }
  request.host = text_of(head[http::field::host]);
  const auto [first, end] = head.equal_range(http::field::cookie);
  for (auto cookie = first; cookie != end; ++cookie) {
    if (!request.cookies.empty()) request.cookies += "; ";
    request.cookies += text_of(cookie->value());
  }
  if (head.count(http::field::range) == 1) {
    request.range = parse_range(text_of(head[http::field::range]));
  }
  return parsed;
}

}  // namespace varve::web

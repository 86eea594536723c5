// SPDX-License-Identifier: Apache-2.0
#include "web_targets.h"

#include <algorithm>
#include <optional>

#include "checks.h"
#include "web/exchange.h"
#include "web/gate.h"
#include "web/request.h"

namespace varve::fuzz {
namespace {

const std::string kSecretToken(64, 'a');
const std::string kSecretFolder(64, 'b');
const std::string kSecretSession(64, 'c');

bool is_same_range(const std::optional<web::WantedRange>& a,
                   const std::optional<web::WantedRange>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->first == b->first && a->last == b->last;
}

bool is_same_request(const web::Request& a, const web::Request& b) {
  return a.is_head == b.is_head && a.path == b.path && a.query == b.query && a.host == b.host &&
         a.cookies == b.cookies && is_same_range(a.range, b.range);
}

void require_lines(std::string_view text) {
  require(std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; }),
          "a header has one line");
}

void require_sound(const web::Request& request) {
  require(request.path.starts_with('/'), "a path begins with a slash");
  require_lines(request.host);
  require_lines(request.cookies);
  require(web::percent_decode(web::percent_encode(request.path)) == request.path,
          "an encoded path decodes to the same path");
  require_lines(web::attachment(request.path));
  for (const auto& [name, value] : request.query) {
    require(request.find(name) == &value, "a value of the query is found");
  }
  if (!request.range) return;
  const auto& range = *request.range;
  require(range.first || range.last, "a range has an end");
  require(!range.first || !range.last || *range.first <= *range.last, "a range is not empty");
}

}  // namespace

void web_request(Bytes input) {
  const auto text = text_of(input);
  const auto parsed = web::parse_request(text);
  require(!parsed.request || parsed.status == 0, "a request has no status of an error");
  require(parsed.status == 0 || (parsed.status >= 400 && parsed.status <= 505), "an HTTP status");
  require(parsed.request || parsed.status != 0 || text.size() < web::kRequestBytesMax,
          "a request has a limit");
  if (parsed.request) {
    require_sound(*parsed.request);
    const web::Gate gate({kSecretToken, kSecretFolder, kSecretSession}, 8080);
    const auto has = [&](const std::string& secret) {
      return text.find(secret.substr(0, 8)) != std::string_view::npos;
    };
    const bool knows = has(kSecretToken) || (has(kSecretFolder) && has(kSecretSession)) ||
                       text.find('%') != std::string_view::npos;
    const auto verdict = gate.judge(*parsed.request);
    const bool is_admitted =
        verdict == web::Gate::Verdict::kAdmitted || verdict == web::Gate::Verdict::kExchange;
    require(!is_admitted || knows, "only a request with secrets is admitted");
  }
  // A part of the bytes is a request that goes on, or has the result of all bytes.
  const auto step = std::max<std::size_t>(1, text.size() / 12);
  for (std::size_t bytes = 0; bytes < text.size(); bytes += step) {
    const auto part = web::parse_request(text.substr(0, bytes));
    if (!part.request && part.status == 0) continue;
    require(part.status == parsed.status &&
                part.request.has_value() == parsed.request.has_value() &&
                (!part.request || is_same_request(*part.request, *parsed.request)),
            "a request does not depend on the bytes behind it");
  }
  static_cast<void>(web::parse_range(text));
  const auto decoded = web::percent_decode(text);
  require(!decoded || decoded->size() <= text.size(), "decoding adds no bytes");
}

std::vector<std::string> web_request_seeds() {
  const std::string host = "Host: 127.0.0.1:8080\r\n";
  return {"GET /?token=" + kSecretToken + " HTTP/1.1\r\n" + host + "\r\n",
          "HEAD /" + kSecretFolder + "/api/list?series=a%20b&version=latest#top HTTP/1.1\r\n" +
              host + "Cookie: a=b\r\nCookie: varve-8080=" + kSecretSession + "\r\n\r\n",
          "GET /file/a%2Fb%C3%A9 HTTP/1.1\r\nhost: [::1]\r\nRange: bytes=5-99\r\n\r\n",
          "GET / HTTP/1.1\r\n" + host + "Range: bytes=-5\r\nContent-Length: 0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "GET / HTTP/1.0\r\n\r\n",
          "bytes=0-18446744073709551615"};
}

}  // namespace varve::fuzz

// SPDX-License-Identifier: Apache-2.0
#include "bucket/http_transfer.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace varve::bucket {
namespace {

constexpr long kBufferBytes = 256L << 10;

// CURLE_TOO_LARGE, which the header of Debian 12 lacks.
constexpr auto kTooLarge = static_cast<CURLcode>(100);

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (auto& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

HttpOutcome outcome_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpOutcome::kAnswered;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return HttpOutcome::kNotSent;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return HttpOutcome::kNotTrusted;
    case CURLE_URL_MALFORMAT:
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
      return HttpOutcome::kNotPossible;
    case CURLE_WRITE_ERROR:
    case CURLE_OUT_OF_MEMORY:         // A header line over the limit of libcurl 7.
    case kTooLarge:                   // The same, of libcurl 8.6 and later.
    case CURLE_UNSUPPORTED_PROTOCOL:  // An answer without a status line.
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return HttpOutcome::kWrongAnswer;
    default:
      return HttpOutcome::kBroken;
  }
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::optional<Timestamp> parse_http_time(const std::string& text) {
  const auto seconds = curl().getdate(text.c_str(), nullptr);
  if (seconds == -1) return std::nullopt;
  return Timestamp{.seconds = seconds};
}

HttpTransfer::HttpTransfer(CurlEasy easy, const HttpSettings& settings, HttpRequest request,
                           HttpEngine::Done done)
    : easy_(std::move(easy)),
      request_(std::move(request)),
      done_(std::move(done)),
      started_(HttpEngine::Clock::now()),
      moved_(started_) {
  if (easy_) {
    set_up(settings);
  } else {
    is_ready_ = false;
  }
}

HttpTransfer::~HttpTransfer() = default;

CurlEasy HttpTransfer::take_easy() {
  if (easy_) curl().easy_reset(easy_.get());
  return std::move(easy_);
}

template <typename Value>
void HttpTransfer::set(CURLoption option, Value value) {
  if (curl().easy_setopt(easy_.get(), option, value) != CURLE_OK) is_ready_ = false;
}

void HttpTransfer::set_up(const HttpSettings& settings) {
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, settings.allows_http ? "http,https" : "https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!settings.ca_file.empty()) set(CURLOPT_CAINFO, settings.ca_file.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings.connect_timeout.count()));
  set(CURLOPT_USERAGENT, "varve");
  set(CURLOPT_ERRORBUFFER, trouble_.data());
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_WRITEFUNCTION, &HttpTransfer::write_answer);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_HEADERFUNCTION, &HttpTransfer::add_header);
  set(CURLOPT_HEADERDATA, this);
  if (request_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request_.has_body) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.body_bytes));
    set(CURLOPT_READFUNCTION, &HttpTransfer::read_body);
    set(CURLOPT_READDATA, this);
    set(CURLOPT_SEEKFUNCTION, &HttpTransfer::seek_body);
    set(CURLOPT_SEEKDATA, this);
  }
  set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  curl_slist* lines = nullptr;
  const auto add = [&](const std::string& line) {
    auto* const longer = curl().slist_append(lines, line.c_str());
    if (longer == nullptr) is_ready_ = false;
    if (longer != nullptr) lines = longer;
  };
  add("Expect:");
  for (const auto& [name, value] : request_.headers) {
    // A header without a value is written so for libcurl.
    add(value.empty() ? name + ";" : name + ": " + value);
  }
  headers_.reset(lines);
  set(CURLOPT_HTTPHEADER, lines);
}

std::size_t HttpTransfer::read_body(char* to, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  transfer.moved_ = HttpEngine::Clock::now();
  std::size_t left = size * count;
  std::uint64_t start = 0;
  std::size_t copied = 0;
  for (const auto part : transfer.request_.parts) {
    if (left == 0) break;
    if (transfer.sent_ < start + part.size()) {
      const auto at = static_cast<std::size_t>(transfer.sent_ - start);
      const auto bytes = std::min(part.size() - at, left);
      std::memcpy(to + copied, part.data() + at, bytes);
      copied += bytes;
      left -= bytes;
      transfer.sent_ += bytes;
    }
    start += part.size();
  }
  return copied;
}

int HttpTransfer::seek_body(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_FAIL;
  transfer.sent_ = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

std::size_t HttpTransfer::write_answer(char* from, std::size_t size, std::size_t count,
                                       void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  auto& answer = transfer.answer_;
  transfer.moved_ = HttpEngine::Clock::now();
  const std::size_t bytes = size * count;
  long status = 0;
  curl().easy_getinfo(transfer.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  if (transfer.request_.out && (status == 200 || status == 206)) {
    const auto out = *transfer.request_.out;
    if (bytes > out.size() - answer.out_bytes) {
      transfer.exceeded_ = "a longer body than requested";
      return CURL_WRITEFUNC_ERROR;
    }
    std::memcpy(out.data() + answer.out_bytes, from, bytes);
    answer.out_bytes += bytes;
    return bytes;
  }
  if (bytes > transfer.request_.answer_bytes_max - answer.body.size()) {
    transfer.exceeded_ = "too long a body";
    transfer.is_too_long_ = true;
    return CURL_WRITEFUNC_ERROR;
  }
  answer.body.append(from, bytes);
  return bytes;
}

std::size_t HttpTransfer::add_header(char* line, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  transfer.moved_ = HttpEngine::Clock::now();
  const std::size_t bytes = size * count;
  transfer.header_bytes_ += bytes;
  if (transfer.header_bytes_ > kAnswerHeaderBytesMax) {
    transfer.exceeded_ = "too many headers";
    return 0;
  }
  const std::string_view text(line, bytes);
  // The headers of an interim answer (status 100) come first.
  if (text.starts_with("HTTP/")) transfer.answer_.headers.clear();
  const auto colon = text.find(':');
  if (colon != std::string_view::npos) {
    transfer.answer_.headers.emplace_back(lower_case(without_blanks(text.substr(0, colon))),
                                          without_blanks(text.substr(colon + 1)));
  }
  return bytes;
}

HttpEngine::Clock::time_point HttpTransfer::deadline() const {
  return std::min(moved_ + request_.stall, started_ + request_.timeout);
}

void HttpTransfer::count_bytes() {
  curl_off_t bytes = 0;
  if (curl().easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &bytes) == CURLE_OK) {
    answer_.bytes_sent = static_cast<std::uint64_t>(bytes);
  }
  if (curl().easy_getinfo(easy_.get(), CURLINFO_SIZE_DOWNLOAD_T, &bytes) == CURLE_OK) {
    answer_.bytes_received = static_cast<std::uint64_t>(bytes);
  }
}

void HttpTransfer::measure_first_byte() {
  curl_off_t requested = 0;
  curl_off_t answered = 0;
  if (curl().easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &requested) == CURLE_OK &&
      curl().easy_getinfo(easy_.get(), CURLINFO_STARTTRANSFER_TIME_T, &answered) == CURLE_OK) {
    answer_.first_byte_after =
        std::chrono::microseconds(std::max(answered - requested, curl_off_t{0}));
  }
}

HttpAnswer HttpTransfer::finish(CURLcode code) {
  count_bytes();
  measure_first_byte();
  long status = 0;
  curl().easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  answer_.status = static_cast<int>(status);
  answer_.outcome = is_too_long_        ? HttpOutcome::kTooLong
                    : exceeded_.empty() ? outcome_of(code)
                                        : HttpOutcome::kWrongAnswer;
  if (answer_.outcome != HttpOutcome::kAnswered) {
    answer_.trouble = !exceeded_.empty()    ? "an answer with " + exceeded_
                      : trouble_[0] != '\0' ? std::string(trouble_.data())
                                            : std::string(curl().easy_strerror(code));
  }
  return std::move(answer_);
}

HttpAnswer HttpTransfer::time_out() {
  count_bytes();
  answer_.outcome = HttpOutcome::kBroken;
  answer_.trouble = "no answer in time";
  return std::move(answer_);
}

}  // namespace varve::bucket

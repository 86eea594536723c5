// SPDX-License-Identifier: Apache-2.0
// One request in libcurl: the settings, the request's body, and the bytes of the answer.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bucket/curl_library.h"
#include "bucket/http_engine.h"

namespace varve::bucket {

using CurlEasy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

/// A request in progress. Used only in the engine's thread. The address of the transfer must not
/// change while the handle is in use.
class HttpTransfer {
 public:
  HttpTransfer(CurlEasy easy, const HttpSettings& settings, HttpRequest request,
               HttpEngine::Done done);
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;
  ~HttpTransfer();

  [[nodiscard]] CURL* easy() const { return easy_.get(); }
  /// Returns whether libcurl accepted all settings.
  [[nodiscard]] bool is_ready() const { return is_ready_; }
  /// Returns the time at which the request fails unless bytes move earlier.
  [[nodiscard]] HttpEngine::Clock::time_point deadline() const;
  /// Returns the answer after libcurl has ended the request with `code`.
  [[nodiscard]] HttpAnswer finish(CURLcode code);
  /// Returns the answer of a request whose deadline has passed.
  [[nodiscard]] HttpAnswer time_out();
  [[nodiscard]] HttpEngine::Done& done() { return done_; }
  /// Returns the handle for another request.
  [[nodiscard]] CurlEasy take_easy();

 private:
  static std::size_t read_body(char* to, std::size_t size, std::size_t count, void* self);
  static int seek_body(void* self, curl_off_t offset, int origin);
  static std::size_t write_answer(char* from, std::size_t size, std::size_t count, void* self);
  static std::size_t add_header(char* line, std::size_t size, std::size_t count, void* self);

  template <typename Value>
  void set(CURLoption option, Value value);
  void set_up(const HttpSettings& settings);
  void count_bytes();
  void measure_first_byte();

  CurlEasy easy_;
  HttpRequest request_;
  HttpEngine::Done done_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_{nullptr,
                                                                       curl().slist_free_all};
  std::array<char, CURL_ERROR_SIZE> trouble_{};
  bool is_ready_ = true;
  const HttpEngine::Clock::time_point started_;
  HttpEngine::Clock::time_point moved_;
  std::uint64_t sent_ = 0;
  std::size_t header_bytes_ = 0;
  std::string exceeded_{};  // The limit exceeded by the answer.
  bool is_too_long_ = false;
  HttpAnswer answer_;
};

}  // namespace varve::bucket

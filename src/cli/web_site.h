// SPDX-License-Identifier: Apache-2.0
// The answers of `varve web`: the page, the page's data as JSON, and downloads.
#pragma once

#include <atomic>
#include <cstddef>

#include "varve/repository.h"
#include "varve/result.h"
#include "web/exchange.h"
#include "web/request.h"
#include "web/server.h"

namespace varve::cli {

/// Limit of concurrent downloads. Further downloads are refused, so that slow downloads leave
/// threads for the page.
inline constexpr std::size_t kDownloadsMax = web::kServerThreads - 4;

/// Answers requests from a repository that is open for reading. Thread-safe.
///
/// No data of a version reaches the browser as a page, a script or a style: names and texts are
/// values in JSON, shown as text by the page's script, and files are attachments.
class WebSite {
 public:
  /// Lifetime: `repository` must outlive the WebSite.
  explicit WebSite(Repository& repository) : repository_(repository) {}

  void answer(const web::Request& request, web::Exchange& exchange);

 private:
  [[nodiscard]] Result<void> download(const web::Request& request, web::Exchange& exchange);

  Repository& repository_;
  std::atomic<std::size_t> downloads_ = 0;
};

/// Sends the error with the fitting HTTP status, unless an answer has begun.
void send_error(web::Exchange& exchange, const Error& error);

}  // namespace varve::cli

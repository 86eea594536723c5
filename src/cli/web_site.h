// SPDX-License-Identifier: Apache-2.0
// The answers of `varve web`: the page, what it shows as JSON, and downloads.
#pragma once

#include "varve/repository.h"
#include "varve/result.h"
#include "web/exchange.h"
#include "web/request.h"

namespace varve::cli {

/// Answers requests from a repository that is open for reading. Thread-safe.
///
/// Nothing of a version reaches the browser as a page, a script or a style: names and texts are
/// values in JSON, which the page's script shows as text, and files are attachments.
class WebSite {
 public:
  /// Lifetime: `repository` must outlive the object.
  explicit WebSite(Repository& repository) : repository_(repository) {}

  void answer(const web::Request& request, web::Exchange& exchange);

 private:
  Repository& repository_;
};

/// Sends the error with the HTTP status that fits it, unless an answer has begun.
void send_error(web::Exchange& exchange, const Error& error);

}  // namespace varve::cli

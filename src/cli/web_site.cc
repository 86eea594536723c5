// SPDX-License-Identifier: Apache-2.0
#include "cli/web_site.h"

#include <array>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "cli/web_answers.h"
#include "cli/web_downloads.h"
#include "web/page.h"

namespace varve::cli {
namespace {

struct Answerer {
  std::string_view path;
  Result<Json> (*answer)(Repository& repository, const web::Request& request);
};
constexpr std::array kAnswerers{
    Answerer{"/api/overview", web_overview}, Answerer{"/api/versions", web_versions},
    Answerer{"/api/space", web_space},       Answerer{"/api/tree", web_tree},
    Answerer{"/api/history", web_history},   Answerer{"/api/diff", web_diff},
    Answerer{"/api/changes", web_changes},   Answerer{"/api/search", web_search},
};

}  // namespace

void send_error(web::Exchange& exchange, const Error& error) {
  if (exchange.has_begun()) return;
  unsigned status = 500;
  if (error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kStale) status = 404;
  if (error.code() == ErrorCode::kNotDirectory || error.code() == ErrorCode::kIsDirectory) {
    status = 404;
  }
  if (error.code() == ErrorCode::kInvalid) status = 400;
  if (error.code() == ErrorCode::kBusy) status = 503;
  const Json object{{"error", printable(error.message())}};
  (void)exchange.send(status, "application/json", object.dump());
}

Result<void> WebSite::download(const web::Request& request, web::Exchange& exchange) {
  const bool is_file = request.path == "/file";
  const bool is_tar = request.path == "/tar";
  if (!is_file && !is_tar && request.path != "/zip") {
    return Error(ErrorCode::kNotFound, "there is no such page");
  }
  Result<void> sent = Error(
      ErrorCode::kBusy, "too many downloads run at the same time; try again when one has ended");
  if (downloads_.fetch_add(1) < kDownloadsMax) {
    sent = is_file ? send_file(repository_, request, exchange)
                   : send_archive(repository_, request, is_tar, exchange);
  }
  downloads_.fetch_sub(1);
  return sent;
}

void WebSite::answer(const web::Request& request, web::Exchange& exchange) {
  for (const web::PageFile& file : web::page_files()) {
    if (request.path != file.path) continue;
    (void)exchange.send(200, std::string(file.type), file.bytes);
    return;
  }
  for (const Answerer& answerer : kAnswerers) {
    if (request.path != answerer.path) continue;
    const auto answered = answerer.answer(repository_, request);
    if (!answered) return send_error(exchange, answered.error());
    (void)exchange.send(200, "application/json", answered->dump());
    return;
  }
  const auto sent = download(request, exchange);
  if (!sent) send_error(exchange, sent.error());
}

}  // namespace varve::cli

// SPDX-License-Identifier: Apache-2.0
#include "remote/head_request.h"

#include <utility>

#include "base/thread_pool.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/readable_head.h"
#include "remote/store_errors.h"
#include "remote/store_probe.h"

namespace varve::remote {

HeadRequest::HeadRequest(HeadQuestion question) : question_(std::move(question)) {
  thread_ = std::jthread([this] {
    base::name_this_thread("varve-look");
    CommitLog log(*question_.bucket, question_.repository_id);
    newest_ = readable_text(log, question_.known);
  });
}

void HeadRequest::stop() {
  if (!thread_.joinable()) return;
  question_.bucket->stop();
  thread_.join();
}

Result<std::optional<NewerHead>> HeadRequest::answer(const crypto::KeyRing* keys) {
  thread_.join();
  const auto& newest = *newest_;
  if (!newest) {
    auto error =
        explain_lack(*question_.bucket, question_.root, newest.error(), question_.repository_id);
    if (is_out_of_reach(error)) return std::optional<NewerHead>();
    return error;
  }
  VARVE_TRY(authenticate_head(*newest, keys));
  if (*newest == question_.known) return std::optional<NewerHead>();
  return std::optional(NewerHead{question_.known, *newest});
}

}  // namespace varve::remote

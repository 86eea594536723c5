// SPDX-License-Identifier: Apache-2.0
// Locks and versions of objects.
#include <fmt/core.h>

#include <array>
#include <utility>

#include "base/clock.h"
#include "bucket/s3_bucket.h"
#include "bucket/s3_headers.h"

namespace varve::bucket {

std::int64_t S3Bucket::store_seconds() const {
  return base::SystemClock().now().seconds + client_->clock_ahead().value_or(0);
}

Result<void> S3Bucket::lock(const std::string& name, const ObjectLock& lock) {
  VARVE_TRY(check_name(name));
  const auto document = fmt::format(
      "<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>{}</Mode>"
      "<RetainUntilDate>{}</RetainUntilDate></Retention>",
      lock_mode_text(lock.mode), lock_end_text(lock, store_seconds()));
  auto extend = request(RequestKind::kPut, "PUT", name);
  extend.query = {{"retention", ""}};
  extend.parts = {std::as_bytes(std::span(document))};
  extend.has_body = true;
  extend.body_bytes = document.size();
  extend.is_change = true;
  VARVE_TRY_ASSIGN(extend.payload_sha256, sha256_hex(extend.parts));
  add_checksum(extend.parts, extend.payload_sha256, extend.headers);
  return drop_answer(client_->call(std::move(extend)));
}

Result<void> S3Bucket::remove_version(const std::string& name, const std::string& version) {
  VARVE_TRY(check_name(name));
  auto remove = request(RequestKind::kRemove, "DELETE", name);
  remove.query = {{"versionId", version}};
  remove.is_change = true;
  const auto removed = drop_answer(client_->call(std::move(remove)));
  if (!removed && removed.error().code() == ErrorCode::kNotFound) return {};
  return removed;
}

}  // namespace varve::bucket

// SPDX-License-Identifier: Apache-2.0
#include "remote/object_cut.h"

#include <fmt/core.h>

#include "base/log.h"

namespace varve::remote {

namespace {

constexpr std::uint64_t kDeadBytesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kDeadBytesAlways = std::uint64_t{8} << 20;
constexpr std::uint64_t kDeadPartMin = 4;  // A quarter.

bool passes(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kInterrupted;
}

// The old object stays: its dead end costs only money.
CutObject stays(const Error& error) {
  base::log(base::LogLevel::kInfo, error.message() + "; the object keeps its dead bytes");
  return {};
}

}  // namespace

bool is_worth_cutting(const Extent& extent) {
  const auto dead = extent.object_bytes - extent.bytes;
  if (extent.bytes == 0 || dead < kDeadBytesMin) return false;
  return dead >= kDeadBytesAlways || dead >= extent.object_bytes / kDeadPartMin;
}

bool is_hot(std::string_view storage_class) {
  return storage_class.empty() || storage_class == "STANDARD" ||
         storage_class == "REDUCED_REDUNDANCY" || storage_class == "EXPRESS_ONEZONE" ||
         storage_class == "INTELLIGENT_TIERING";
}

Result<CutObject> copy_live_front(bucket::Bucket& bucket, const std::string& from,
                                  std::uint64_t bytes, const std::string& to) {
  const auto info = bucket.head(from);
  if (!info) return passes(info.error()) ? Result<CutObject>(info.error()) : stays(info.error());
  if (!is_hot(info->storage_class)) return CutObject();
  bucket::PutOptions options;
  options.storage_class = info->storage_class;
  const auto copied = bucket.copy_prefix(from, bytes, to, options);
  if (!copied && passes(copied.error())) return copied.error();
  if (!copied && copied.error().code() == ErrorCode::kUnsupported)
    return CutObject{CutOutcome::kUnsupported, {}};
  if (!copied) return stays(copied.error());
  // The old object will be removed, so the new object is checked before a head names the new
  // object.
  const auto made = bucket.head(to);
  if (!made) return passes(made.error()) ? Result<CutObject>(made.error()) : stays(made.error());
  if (made->bytes == bytes) return CutObject{CutOutcome::kCopied, made->etag};
  return stays({ErrorCode::kCorrupt, fmt::format("{}/{} has {} bytes after a copy of {}",
                                                 bucket.describe(), to, made->bytes, bytes)});
}

}  // namespace varve::remote

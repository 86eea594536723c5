// SPDX-License-Identifier: Apache-2.0
#include "remote/outer_objects.h"

#include <fmt/core.h>

#include <array>
#include <functional>
#include <span>
#include <string_view>

#include "base/coding.h"
#include "format/superblock.h"
#include "remote/commit_log.h"
#include "remote/head.h"

namespace varve::remote {

namespace {

// Creates a missing object. Overwrites a present object only if `is_damaged` returns true for the
// object's text, because no writer puts a damaged object into the store.
Result<void> put_back(bucket::Bucket& bucket, const std::string& name, const std::string& text,
                      const std::function<bool(std::string_view)>& is_damaged) {
  const std::array<std::span<const std::byte>, 1> body{base::as_bytes(text)};
  const auto created = bucket.put(name, body, {.condition = bucket::PutCondition::kIfAbsent});
  if (created || created.error().code() != ErrorCode::kExists) return created;
  const auto present = bucket.get_all(name, kHeadBytesMax);
  const auto code = present ? ErrorCode::kIo : present.error().code();
  const bool is_unreadable = code == ErrorCode::kCorrupt || code == ErrorCode::kTooLarge;
  if (!present && !is_unreadable) return present.error();
  if (present && base::as_text(*present) == text) return {};
  if (is_unreadable || is_damaged(base::as_text(*present))) return bucket.put(name, body, {});
  return Error(ErrorCode::kLocked, fmt::format("{}/{} was written by another machine; nothing is "
                                               "repaired in the store",
                                               bucket.describe(), name));
}

}  // namespace

Result<void> put_superblock_back(bucket::Bucket& bucket, const std::string& text) {
  return put_back(bucket, kSuperblockName, text,
                  [](std::string_view present) { return !format::decode_superblock(present); });
}

Result<void> put_head_back(bucket::Bucket& bucket, const NeededObjects& needed) {
  VARVE_TRY_ASSIGN(const auto head, decode_head(needed.head_text));
  CommitLog log(bucket, needed.repository_id);
  VARVE_TRY_ASSIGN(const auto later, log.later_than(head.number));
  if (later) {
    return Error(ErrorCode::kLocked,
                 fmt::format("{}: another folder writes to this repository (head {}); nothing is "
                             "repaired in the store. `varve repair` in that folder repairs the "
                             "store",
                             bucket.describe(), later->number));
  }
  return put_back(bucket, needed.head, needed.head_text, [&](std::string_view present) {
    const auto decoded = decode_head(present);
    return !decoded || decoded->number != head.number;
  });
}

}  // namespace varve::remote

// SPDX-License-Identifier: Apache-2.0
// Frees the dead end of an object, by a copy inside the store. docs/decisions/095.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "remote/changes.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns whether an object has enough dead space for a copy of its live bytes. Enough is 8 MiB,
/// or a quarter of the object if worth more than the price of the requests.
[[nodiscard]] bool is_worth_cutting(const Extent& extent);
/// Returns whether a storage class charges neither for reading nor for early removal of an object.
[[nodiscard]] bool is_hot(std::string_view storage_class);

enum class CutOutcome : std::uint8_t {
  kCopied,       ///< The new object has the live bytes.
  kStays,        ///< The old object stays as it is.
  kUnsupported,  ///< The store copies no ranges.
};
/// The result of a copy. With kCopied, `etag` is the ETag of the new object; empty without one.
struct CutObject {
  CutOutcome outcome = CutOutcome::kStays;
  std::string etag{};
};
/// Copies the first bytes of an object to a new object in the same storage class, if the class is
/// hot. No data passes through this machine. Errors: transient errors of the bucket.
[[nodiscard]] Result<CutObject> copy_live_front(bucket::Bucket& bucket, const std::string& from,
                                                std::uint64_t bytes, const std::string& to);

}  // namespace varve::remote

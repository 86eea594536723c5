// SPDX-License-Identifier: Apache-2.0
// Treatment of evicted files by the series of a repository in an object store.
#pragma once

#include <cstdint>
#include <string>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::series {

/// Postpones arranging that would download much for little gain. docs/decisions/112. Thread-safe.
class EvictionRules {
 public:
  virtual ~EvictionRules() = default;

  /// Returns whether a data file, by its path, is only in the object store.
  [[nodiscard]] virtual Result<bool> is_evicted(const std::string& path) = 0;
  /// Returns the limit for evicted files that the folder can cache while arranging reads, in bytes.
  [[nodiscard]] virtual std::uint64_t bytes_at_once() const = 0;
  /// Returns whether arranging may download now. `newest` is the newest sealed version of the
  /// series, and `active_bytes` the stored bytes of the series' active set. After false, the series
  /// waits.
  [[nodiscard]] virtual bool may_download(SeriesId series, VersionNumber newest,
                                          std::uint64_t active_bytes) = 0;
  /// Records that arranging has left no work for versions up to `newest`.
  virtual void arranged(SeriesId series, VersionNumber newest, std::uint64_t active_bytes) = 0;
};

}  // namespace varve::series

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "varve/types.h"

namespace varve::transfer {

/// Returns the time of the kernel's clock for file times.
[[nodiscard]] Timestamp kernel_time();

/// Knows on which file systems of the source every change of a file shows in the ctime, and from
/// when on a change could still leave the ctime unchanged. Not thread-safe.
class SourceClock {
 public:
  /// `started_at`: the time of the beginning of the store. A change within `settle_s` seconds
  /// before `started_at` may have the time of a later change, because file systems round times.
  SourceClock(Timestamp started_at, std::uint32_t settle_s)
      : started_at_(started_at), settle_s_(settle_s) {}

  /// Returns whether a file in the open directory, with the given device and times, will have a
  /// different ctime after any later change.
  [[nodiscard]] bool is_settled(int directory_fd, dev_t device, const Timestamp& mtime,
                                const Timestamp& ctime);
  /// Starts writing the open file's changed pages to disk: from then on, a change through a
  /// shared mapping sets the ctime again. Does not wait for the disk. Returns false if a page is
  /// still changed, or may be: a change through a mapping may then leave the ctime unchanged.
  [[nodiscard]] bool settle_mappings(int fd, const Timestamp& ctime) const;

 private:
  /// Returns the seconds before started_at_ that do not count; nullopt if no ctime counts.
  [[nodiscard]] std::optional<std::int64_t> margin_of(int directory_fd, dev_t device);

  const Timestamp started_at_;
  const std::uint32_t settle_s_;
  std::map<dev_t, std::optional<std::int64_t>> margins_;
};

}  // namespace varve::transfer

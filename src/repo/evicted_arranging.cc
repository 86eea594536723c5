// SPDX-License-Identifier: Apache-2.0
#include "repo/evicted_arranging.h"

#include <fmt/core.h>

#include "base/log.h"

namespace varve::repo {

namespace {

// The name of a number in the folder's state: the newest version up to which a series is arranged.
// docs/FORMAT.md §15.4.
std::string purpose_of(SeriesId series) {
  return fmt::format("arranged {}", static_cast<std::uint32_t>(series));
}

}  // namespace

Result<bool> EvictedArranging::is_evicted(const std::string& path) {
  return files_.is_evicted(path);
}

// Three quarters of the limit of cached blocks; the rest is left for concurrent reads.
std::uint64_t EvictedArranging::bytes_at_once() const {
  return files_.cached_block_bytes() / 4 * 3;
}

bool EvictedArranging::may_download(SeriesId series, VersionNumber newest,
                                    std::uint64_t active_bytes) {
  if (active_bytes <= files_.cached_file_bytes()) return true;
  const auto arranged = files_.number(purpose_of(series));
  if (!arranged) {
    base::log(base::LogLevel::kDebug, arranged.error().message());
    return true;
  }
  // A takeover or a rebuilt catalog may have given lower numbers again.
  const auto now = static_cast<std::uint64_t>(newest);
  const bool is_due = now < *arranged || now - *arranged >= kVersionsAtOnce;
  if (is_due || is_far_behind_(series)) return true;
  const std::lock_guard lock(mutex_);
  waiting_.insert(series);
  return false;
}

void EvictedArranging::arranged(SeriesId series, VersionNumber newest, std::uint64_t active_bytes) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.erase(series);
  }
  if (active_bytes <= files_.cached_file_bytes()) return;
  const auto noted = files_.set_number(purpose_of(series), static_cast<std::uint64_t>(newest));
  if (!noted) base::log(base::LogLevel::kDebug, noted.error().message());
}

bool EvictedArranging::waits(SeriesId series) {
  const std::lock_guard lock(mutex_);
  return waiting_.contains(series);
}

}  // namespace varve::repo

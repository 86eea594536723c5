// SPDX-License-Identifier: Apache-2.0
#include "remote/evictor.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "remote/bucket_folder.h"
#include "remote/local_data.h"
#include "remote/replicator.h"

namespace varve::remote {

namespace {

// Slack for writers that passed the check before the limit was reached.
constexpr std::uint64_t kRoomBytesLeft = 4U << 20;

}  // namespace

bool Evictor::evict(std::uint64_t wanted) {
  std::uint64_t missing = 0;
  if (const auto disk = folder_.files().space(folder_.path())) {
    const auto least = store::spare_bytes(*disk) + wanted;
    missing = least - std::min(least, disk->available_bytes());
  }
  const auto shrunk = missing == 0 ? 0 : folder_.data().shrink_cache(missing);
  if (!replicator_.is_newest()) return shrunk != 0;
  const auto done =
      local_.evict(cached_file_bytes_of(folder_.config()), missing - std::min(missing, shrunk));
  if (!done) {
    base::log(base::LogLevel::kWarning, "nothing is evicted: " + done.error().message());
    return shrunk != 0;
  }
  if (done->files == 0) return shrunk != 0;
  base::log(base::LogLevel::kInfo, fmt::format("evicted {} files of {} bytes; {} bytes are left",
                                               done->files, done->bytes, done->local_bytes));
  return true;
}

std::optional<std::uint64_t> Evictor::disk_room(std::uint64_t wanted) {
  const auto room = [this] { return std::max(disk_.room(), kRoomBytesLeft) - kRoomBytesLeft; };
  auto left = room();
  if (left >= wanted || (evict(wanted) && (left = room()) >= wanted)) return left;
  if (!replicator_.is_newest()) {
    wants_newest_ = true;
    return 0;
  }
  if (disk_.has_unwritten()) return 0;
  const auto staged = local_.staged_bytes();
  return staged && *staged == 0 ? std::nullopt : std::optional<std::uint64_t>(0);
}

}  // namespace varve::remote

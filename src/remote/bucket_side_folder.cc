// SPDX-License-Identifier: Apache-2.0
// Eviction, and the limits of a folder's cache.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "remote/bucket_side.h"

namespace varve::remote {

namespace {
// The share (1/4) of the bound on local data for blocks of evicted files.
constexpr std::uint64_t kBlocksShare = 4;
// Slack for writers that passed the check before the limit was reached.
constexpr std::uint64_t kRoomBytesLeft = 4U << 20;

}  // namespace

// Reads the sequence number first, so that the head has all counted changes.
Result<ReplicateReport> BucketSide::replicate_once() {
  if (wants_newest_.exchange(false)) VARVE_TRY(replicator_->confirm_newest());
  const auto labelled = labelled_ ? labelled_() : 0;
  auto done = replicator_->replicate();
  // The catalog and the state need room, too.
  if (!done && done.error().code() == ErrorCode::kNoSpace && evict()) {
    done = replicator_->replicate();
  }
  if (done && labelled != 0) remember_(labelled);
  return done;
}

Result<bool> BucketSide::is_evicted(const std::string& path) {
  return local_ ? local_->is_evicted(path.substr(path_.size() + 1)) : Result<bool>(false);
}

bool BucketSide::evict(std::uint64_t wanted) {
  std::uint64_t missing = 0;
  if (const auto disk = files_->space(path_)) {
    const auto least = store::spare_bytes(*disk) + wanted;
    missing = least - std::min(least, disk->available_bytes());
  }
  const auto shrunk = missing == 0 ? 0 : data_->shrink_cache(missing);
  if (!replicator_->is_newest()) return shrunk != 0;
  const auto done = local_->evict(cached_file_bytes(), missing - std::min(missing, shrunk));
  if (!done) {
    base::log(base::LogLevel::kWarning, "nothing is evicted: " + done.error().message());
    return shrunk != 0;
  }
  if (done->files == 0) return shrunk != 0;
  base::log(base::LogLevel::kInfo, fmt::format("evicted {} files of {} bytes; {} bytes are left",
                                               done->files, done->bytes, done->local_bytes));
  return true;
}

std::optional<std::uint64_t> BucketSide::disk_room(std::uint64_t wanted) {
  const auto room = [this] { return std::max(guard_->room(), kRoomBytesLeft) - kRoomBytesLeft; };
  auto left = room();
  if (left >= wanted || (evict(wanted) && (left = room()) >= wanted)) return left;
  if (!replicator_->is_newest()) {
    wants_newest_ = true;
    return 0;
  }
  if (guard_->has_unwritten()) return 0;
  const auto staged = local_->staged_bytes();
  return staged && *staged == 0 ? std::nullopt : std::optional<std::uint64_t>(0);
}

std::uint64_t BucketSide::cached_block_bytes() const {
  const auto bytes = cache_bytes_of(config_);
  return config_.reads_only ? bytes : bytes / kBlocksShare;
}

std::uint64_t BucketSide::cached_file_bytes() const {
  return cache_bytes_of(config_) - cached_block_bytes();
}

Result<std::uint64_t> BucketSide::number(std::string_view purpose) {
  if (!replicator_) return std::uint64_t{0};
  return replicator_->state().number(purpose);
}

Result<void> BucketSide::set_number(std::string_view purpose, std::uint64_t value) {
  return replicator_ ? replicator_->state().set_number(purpose, value) : Result<void>();
}

}  // namespace varve::remote

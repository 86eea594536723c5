// SPDX-License-Identifier: Apache-2.0
// Removals by a replicator in the store.
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "remote/garbage.h"
#include "remote/replicator.h"
#include "remote/replicator_round.h"

namespace varve::remote {

namespace {

constexpr std::string_view kListedAt = "listed";        // Seconds since 1970.
constexpr std::string_view kHeadsListed = "old heads";  // Number of the head at that time.
constexpr std::uint64_t kHeadsPart = 4;  // Part of the retained heads between two lists.

}  // namespace

Result<std::uint64_t> Replicator::remove_garbage() {
  const std::lock_guard lock(mutex_);
  // Only the writer of the newest head removes objects.
  if (fenced_ || head_.holder != holder_ || !loaded_ || !may_remove_) return std::uint64_t{0};
  auto removed = clean_up();
  if (removed || removed.error().code() != ErrorCode::kNotPermitted) return removed;
  may_remove_ = false;
  base::log(base::LogLevel::kWarning,
            removed.error().message() +
                "; objects that are not needed stay until `varve reclaim` removes them with "
                "another key");
  return std::uint64_t{0};
}

Result<std::uint64_t> Replicator::clean_up() {
  VARVE_TRY_ASSIGN(const auto uploaded, state_.uploaded());
  std::optional<std::set<std::string>> named;  // Made for the first queried object.
  const auto is_named = [&](const std::string& object) {
    if (!named) {
      named = names_of(objects_);
      named->merge(names_of(head_));
      named->insert(uploader_.doubtful().begin(), uploader_.doubtful().end());
      for (const auto& [key, extent] : uploaded) named->insert(extent.object);
    }
    return named->contains(object);
  };

  GarbagePlace place;
  place.bucket = parts_.bucket;
  place.state = &state_;
  place.repository_id = parts_.repository_id;
  place.now_s = parts_.clock->now().seconds;
  place.limits = parts_.uploads;
  if (parts_.lock_seconds) place.lock_s = parts_.lock_seconds();
  // After a list, the orphans may be removed only after this process has created a further head.
  VARVE_TRY_ASSIGN(const auto listed, state_.number(kListedAt));
  const auto since = place.now_s - static_cast<std::int64_t>(listed);
  if (listed == 0 || since < 0 || since >= parts_.orphan_seconds) {
    if (listed != 0) {
      VARVE_TRY(note_orphans(place, is_named, [this] { return Result(head_.number); }));
    }
    VARVE_TRY(state_.set_number(kListedAt, static_cast<std::uint64_t>(place.now_s)));
  }
  VARVE_TRY_ASSIGN(auto removed, remote::remove_garbage(place, head_.number, is_named));
  VARVE_TRY_ASSIGN(const auto heads_listed, state_.number(kHeadsListed));
  if (head_.number > parts_.heads.heads &&
      head_.number - heads_listed >= parts_.heads.heads / kHeadsPart) {
    VARVE_TRY_ASSIGN(const auto heads, remove_old_heads(place, parts_.heads));
    VARVE_TRY(state_.set_number(kHeadsListed, head_.number));
    removed += heads;
  }
  return removed;
}

}  // namespace varve::remote

// SPDX-License-Identifier: Apache-2.0
#include "fs/sealed_removals.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "control/local_control.h"
#include "varve/replication.h"

namespace varve::fs {
namespace {
/// A refusal is logged again after this time. `rm -r` tries each name of a version.
constexpr std::chrono::seconds kLoggedFor{60};
}  // namespace

SealedRemovals::Removal* SealedRemovals::find(Slot& slot) {
  const auto place = removals_.find(&slot);
  if (place == removals_.end()) return nullptr;
  const std::chrono::seconds patience(show_.rm_deletes_s.value_or(0));
  if (now_() - place->second.last < patience) return &place->second;
  slot.note_returned(std::move(place->second.hidden));
  removals_.erase(place);
  any_ = !removals_.empty();
  base::log(base::LogLevel::kWarning,
            fmt::format("the removal of a version of series \"{}\" stopped for {} seconds: nothing "
                        "was deleted, and all of its files are visible again",
                        slot.series_name(), patience.count()));
  return nullptr;
}

bool SealedRemovals::is_under_way(Slot& slot) {
  if (!any_) return false;
  const std::lock_guard lock(mutex_);
  return find(slot) != nullptr;
}

bool SealedRemovals::hides(Slot& slot, Rank rank) {
  if (!any_) return false;
  const std::lock_guard lock(mutex_);
  const Removal* const removal = find(slot);
  return removal != nullptr && removal->hidden.contains(rank);
}

Result<bool> SealedRemovals::is_empty(Slot& slot, VersionReader& reader, Rank directory) {
  bool empty = true;
  VARVE_TRY(
      reader.list(directory, 0, [&](std::uint64_t, std::string_view, const SealedEntry& entry) {
        empty = hides(slot, entry.rank);
        return empty;
      }));
  return empty;
}

Result<void> SealedRemovals::begin(Slot& slot, const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (find(slot) != nullptr) return {};
  }
  if (slot.times_returned() >= kStoppedMax) {
    return Error(ErrorCode::kNoSpace,
                 "too many removals of this version have stopped; delete it with `varve rm`");
  }
  const auto allowed =
      repository_.learn_fence(FenceAge::kOfVersions)
          ? Result<void>(control::no_changes())
          : Result<void>(repository_.check_deletion(slot.series().id, slot.number()));
  const std::lock_guard lock(mutex_);
  if (!allowed) {
    const ErrorCode code = allowed.error().code();
    if (!refused_ || refused_->slot != &slot || refused_->code != code ||
        now_() >= refused_->until) {
      base::log(base::LogLevel::kWarning, fmt::format("cannot remove {}/{}: {}", slot.series_name(),
                                                      name, allowed.error().message()));
      refused_ = {.slot = &slot, .code = code, .until = now_() + kLoggedFor};
    }
    return allowed.error();
  }
  removals_.try_emplace(&slot, Removal{.hidden = {}, .last = now_()});
  any_ = true;
  return {};
}

Result<void> SealedRemovals::remove(const Node& directory, std::string_view name, What what) {
  Slot& slot = *directory.slot;
  VARVE_TRY_ASSIGN(const SealedEntry entry, directory.reader->lookup(directory.rank, name));
  if (hides(slot, entry.rank)) return Error(ErrorCode::kNotFound, "the name was removed");
  const bool is_directory = S_ISDIR(entry.attributes.mode);
  if (is_directory && what == What::kFile) {
    return Error(ErrorCode::kIsDirectory, "the name is a directory");
  }
  if (!is_directory && what == What::kDirectory) {
    return Error(ErrorCode::kNotDirectory, "the name is no directory");
  }
  if (is_directory) {
    VARVE_TRY_ASSIGN(const bool empty, is_empty(slot, *directory.reader, entry.rank));
    if (!empty) return Error(ErrorCode::kNotEmpty, "the directory has names");
  }
  VARVE_TRY(begin(slot, directory.reader->info().name));
  const std::lock_guard lock(mutex_);
  Removal* const removal = find(slot);
  // The time ran out, or the version was deleted, since begin().
  if (removal == nullptr) return Error(ErrorCode::kBusy, "the removal was interrupted");
  if (removal->hidden.ranges() >= kRangesMax) {
    return Error(ErrorCode::kNoSpace,
                 "too many names in scattered places are removed from a sealed version; delete it "
                 "with `varve rm`");
  }
  removal->hidden.insert(entry.rank);
  removal->last = now_();
  return {};
}

void SealedRemovals::forget(Slot& slot) {
  const std::lock_guard lock(mutex_);
  removals_.erase(&slot);
  any_ = !removals_.empty();
}

}  // namespace varve::fs

// SPDX-License-Identifier: Apache-2.0
// Compares the objects of a store with the records in a folder.
#include "remote/check_store.h"

#include <fmt/core.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "bucket/locking_bucket.h"
#include "remote/check_store_data.h"
#include "remote/commit_log.h"
#include "remote/copy_check.h"
#include "remote/damage_notes.h"
#include "remote/etag_check.h"
#include "remote/follow_once.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/needed_objects.h"
#include "remote/object_locks.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/remote_folder.h"

namespace varve::remote {

namespace {

// Limit of listed damages of one kind; further damages are only counted.
constexpr std::size_t kWeakLocksListed = 20;
// Tolerated difference of the clocks, in seconds; a larger difference gets a note.
constexpr std::int64_t kSkewMax = 60;

void note_differences(const bucket::ProbeRecord& before, const bucket::ProbeRecord& now,
                      StoreCheck& check) {
  for (const auto& text : bucket::differences(before.abilities, now.abilities)) {
    check.notes.push_back("the store changed: " + text);
  }
}

// Tries the store's abilities again. Without conditional requests, two writers could harm each
// other.
Result<void> check_abilities(bucket::Bucket& bucket, const base::Clock& clock,
                             const ProbeRequest& request, std::optional<bucket::ProbeRecord>& now,
                             StoreCheck& check) {
  const auto probed = probe_store(bucket, clock, request);
  // Read-only credentials need no abilities.
  if (!probed && probed.error().code() == ErrorCode::kNotPermitted) return {};
  if (!probed) return probed.error();
  now = *probed;
  if (const auto& before = request.before) {
    now->abilities.locks = before->abilities.locks;
    note_differences(*before, *now, check);
  }
  if (std::abs(now->clock_ahead_s) > kSkewMax) {
    check.notes.push_back(fmt::format("the store's clock is {} s {} this machine's; set the clock",
                                      std::abs(now->clock_ahead_s),
                                      now->clock_ahead_s > 0 ? "ahead of" : "behind"));
  }
  if (now->abilities.conditions == bucket::Conditions::kHonoured) return {};
  check.damages.push_back(
      {kSuperblockName,
       "the store does not honour conditional requests (If-None-Match): two writers could harm "
       "each other. Do not write until it does"});
  return {};
}

// A head writes the changes since the previous head. The comparison finds missed changes.
Result<void> check_catalog(io::FileSystem& files, const std::string& folder,
                           const ReplicaState& state, const NeededObjects& known,
                           StoreCheck& check) {
  const auto differences = differences_from_copy(files, folder, state);
  // The check of the repository reports a damaged catalog.
  if (!differences)
    return differences.error().code() == ErrorCode::kCorrupt ? Result<void>()
                                                             : Result<void>(differences.error());
  if (differences->value_or(0) == 0) return {};
  check.damages.push_back(
      {known.head, fmt::format("has other records of the catalog than this folder, {} of them. No "
                               "data is lost here; `varve repair --rebuild-catalog` writes the "
                               "catalog to the store again",
                               **differences)});
  return {};
}

// Compares the locks with the setting. Returns the objects to be locked again by a seal.
Result<std::map<std::string, std::int64_t>> check_locks(bucket::Bucket& bucket,
                                                        const NeededObjects& expected,
                                                        std::int64_t now_s, StoreCheck& check) {
  std::map<std::string, std::int64_t> weak_names;
  if (expected.lock_days == 0) return weak_names;
  std::vector<std::string> names{kSuperblockName};
  for (const auto& [name, bytes] : expected.objects) names.push_back(name);
  if (expected.has_copies) {
    for (const auto& [name, bytes] : expected.copies) names.push_back(name);
  }
  const auto period_s = bucket::seconds_of({static_cast<std::uint32_t>(expected.lock_days), {}});
  VARVE_TRY_ASSIGN(const auto weak, weak_locks(bucket, names, {period_s, now_s}));
  for (const auto& damage : weak) {
    weak_names[damage.object] = 0;
    if (weak_names.size() <= kWeakLocksListed) check.damages.push_back(damage);
  }
  if (weak.empty()) return weak_names;
  check.notes.push_back(
      fmt::format("the locks of {} objects are missing or too short for {} days; the next seals "
                  "extend them, {} at a time",
                  weak.size(), expected.lock_days, kLocksAtOnce));
  return weak_names;
}

// Keeps the findings in the folder, unless another process uses the folder.
void keep_findings(io::FileSystem& files, const std::string& folder,
                   const std::optional<bucket::ProbeRecord>& probed,
                   const std::map<std::string, std::int64_t>& weak) {
  const auto lock = files.lock(store::RepositoryPaths(folder).lock());
  if (!lock) return;
  const auto keep = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, folder, false));
    if (probed) VARVE_TRY(set_probe_record(state, *probed));
    return state.locks().set_ends(weak);
  };
  const auto kept = keep();
  if (!kept) base::log(base::LogLevel::kInfo, kept.error().message());
}

// Notes ETags, and forgets the ETags of objects that the folder no longer knows.
void note_etags(io::FileSystem& files, const std::string& folder, const NeededObjects& needed,
                const Etags& etags) {
  std::set<std::string> gone;
  for (const auto& [name, etag] : needed.etags) {
    if (!needed.objects.contains(name) && !needed.others.contains(name)) gone.insert(name);
  }
  if (etags.empty() && gone.empty()) return;
  const auto note = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto state, ReplicaState::open(files, folder, false));
    return state.etags().update(etags, gone);
  };
  const auto noted = note();
  if (!noted) base::log(base::LogLevel::kInfo, noted.error().message());
}

void record_check(io::FileSystem& files, const std::string& folder, const base::Clock& clock,
                  const StoreCheck& check, bool has_read_all, const NeededObjects& needed) {
  StoreCheckEnd end;
  end.has_read_all = has_read_all;
  end.noted = needed.damaged;
  for (const auto& damage : check.damages) end.damaged.insert(damage.object);
  end.damages = check.damages.size();
  record_store_check(files, folder, clock, end);
}

// Returns the message about another writer; empty without another writer. The other writer may have
// removed objects of this folder's head.
Result<std::string> find_fence(bucket::Bucket& bucket, const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto fenced, state.fenced());
  if (fenced) return *fenced;
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return std::string();
  VARVE_TRY_ASSIGN(const auto known, decode_head(*text));
  CommitLog log(bucket, known.repository_id);
  const auto later = log.later_than(known.number);
  // Another process may be writing in this folder.
  const auto head = later && *later ? decode_head((*later)->text) : Result<Head>(Head());
  VARVE_TRY_ASSIGN(const auto pending, state.pending());
  const bool is_own = !later || !*later || !head || head->holder == known.holder ||
                      (pending && *pending == (*later)->text);
  if (is_own) return std::string();
  return fmt::format("{}: another folder writes to this repository (head {}, {})",
                     bucket.describe(), head->number, base::local_time_text({head->seconds, 0}));
}

// The folder's last head may name objects replaced by the writer since.
Result<void> follow_first(bucket::Bucket& bucket, io::FileSystem& files, const std::string& folder,
                          const OpenOptions& options, StoreCheck& check) {
  VARVE_TRY_ASSIGN(const auto followed, follow_newest(bucket, files, folder, options));
  if (followed != Followed::kElsewhere) return {};
  check.notes.push_back(
      "another process uses this folder, or it cannot be written: the objects were compared with "
      "the state that it shows, which may not be the newest one");
  return {};
}

}  // namespace

Result<StoreCheck> check_objects(const std::string& folder, const OpenOptions& options,
                                 const BucketHooks& hooks, bool reads_objects) {
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, read_config(*files, folder));
  StoreCheck check;
  if (!config) return check;
  VARVE_TRY_ASSIGN(const auto bucket, bucket_opener(hooks, options.store.access)(*config));
  if (config->reads_only) VARVE_TRY(follow_first(*bucket, *files, folder, options, check));
  VARVE_TRY_ASSIGN(auto state, find_state(*files, folder));
  VARVE_TRY_ASSIGN(auto expected, needed_objects(*files, folder, state));
  expected.is_attached = config->reads_only;
  check.place = config->place;
  if (state && !config->reads_only) {
    VARVE_TRY_ASSIGN(const auto fence, find_fence(*bucket, *state));
    if (!fence.empty()) {
      check.notes.push_back(
          fence +
          ". The objects there are not compared. `varve copy` brings versions that only "
          "this folder has into another repository. " +
          how_to_write_again(config->place));
      return check;
    }
  }
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  const auto now = clock.now().seconds;
  VARVE_TRY_ASSIGN(const auto listed, compare_list(*bucket, expected, now, check));
  VARVE_TRY(compare_outer_objects(*bucket, expected, listed, check));
  Etags etags;
  if (state) {
    const auto which = reads_objects ? ObjectsToRead::kAll : ObjectsToRead::kCopied;
    VARVE_TRY(read_objects(*bucket, *state, which, listed, check));
    VARVE_TRY_ASSIGN(etags, compare_etags(*bucket, *state, listed, which, check));
  }
  if (state && config->reads_only) {
    VARVE_TRY(check_newer_head(*bucket, expected.repository_id, *state, check));
  }
  if (state && !config->reads_only) {
    VARVE_TRY(check_catalog(*files, folder, *state, expected, check));
  }
  state.reset();  // The notes open the state for writing.
  note_etags(*files, folder, expected, etags);
  if (config->reads_only) {
    record_check(*files, folder, clock, check, reads_objects, expected);
    return check;
  }
  std::optional<bucket::ProbeRecord> probed;
  ProbeRequest probe{.before = expected.probed};
  probe.open_client = racer_opener(hooks, options.store.access, *config);
  VARVE_TRY(check_abilities(*bucket, clock, probe, probed, check));
  VARVE_TRY_ASSIGN(const auto weak,
                   check_locks(*bucket, expected, now + bucket->clock_ahead().value_or(0), check));
  keep_findings(*files, folder, probed, weak);
  record_check(*files, folder, clock, check, reads_objects, expected);
  return check;
}

}  // namespace varve::remote

namespace varve {

Result<StoreCheck> RemoteFolder::check(const OpenOptions& options, bool reads_objects) const {
  return remote::check_objects(path_, options, {}, reads_objects);
}

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
#include "remote/reclaim.h"

#include <fmt/core.h>

#include <set>

#include "base/clock.h"
#include "remote/attachment.h"
#include "remote/bucket_config.h"
#include "remote/commit_log.h"
#include "remote/garbage.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "remote/replicator_round.h"
#include "remote/store_probe.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

// Returns the number of the newest head. A list of the store may show a head late, but a request
// for the head is never late.
Result<std::uint64_t> newest_number(CommitLog& log, const std::string& known) {
  VARVE_TRY_ASSIGN(const auto text, newest_head(log, known));
  VARVE_TRY_ASSIGN(const auto head, decode_head(text));
  auto number = head.number;
  while (true) {
    const auto next = read_head(log, number + 1);
    if (!next && next.error().code() == ErrorCode::kNotFound) return number;
    if (!next) return next.error();
    ++number;
  }
}

}  // namespace

Result<ReclaimReport> reclaim_store(const std::string& folder, const OpenOptions& options,
                                    std::int64_t wait_seconds, const BucketHooks& hooks,
                                    const std::function<Result<ObjectLock>()>& refresh) {
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, read_config(*files, folder));
  if (!config) {
    return Error(ErrorCode::kInvalid,
                 folder + " is no attached folder; make one with `varve attach`");
  }
  if (!config->reads_only) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} writes to {}, and only a folder that reads can reclaim; make one "
                             "with `varve attach {} DIR`",
                             folder, config->place, config->place));
  }
  VARVE_TRY_ASSIGN(const auto lock_setting, refresh());
  VARVE_TRY_ASSIGN(const auto lock, files->lock(store::RepositoryPaths(folder).lock()));
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(*files, folder, false));
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return Error(ErrorCode::kNoRepository, folder + " has no state of the store");
  VARVE_TRY_ASSIGN(const auto head, decode_head(*text));
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  auto named = names_of(map);
  named.merge(names_of(head));
  const auto is_named = [&](const std::string& object) { return named.contains(object); };

  VARVE_TRY_ASSIGN(const auto bucket, bucket_opener(hooks, options.store.access)(*config));
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  GarbagePlace place;
  place.bucket = bucket.get();
  place.state = &state;
  place.repository_id = head.repository_id;
  place.now_s = clock.now().seconds;
  place.limits = hooks.uploads;
  place.wait_s = wait_seconds;
  place.lock_s = bucket::seconds_of(lock_setting);
  ReclaimReport report;
  VARVE_TRY_ASSIGN(report.removed_objects, remove_garbage(place, head.number, is_named));
  CommitLog log(*bucket, head.repository_id);
  VARVE_TRY_ASSIGN(report.noted_objects,
                   note_orphans(place, is_named, [&] { return newest_number(log, *text); }));
  VARVE_TRY_ASSIGN(report.removed_heads, remove_old_heads(place, hooks.heads));
  VARVE_TRY(remove_old_probes(*bucket, place.now_s + bucket->clock_ahead().value_or(0)));
  return report;
}

}  // namespace varve::remote

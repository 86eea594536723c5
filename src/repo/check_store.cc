// SPDX-License-Identifier: Apache-2.0
// Compares a list of the object store with what a folder knows of it.
#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "base/log.h"
#include "bucket/abilities.h"
#include "bucket/bucket.h"
#include "bucket/locking_bucket.h"
#include "format/superblock.h"
#include "replica/copy_check.h"
#include "replica/head.h"
#include "replica/object_locks.h"
#include "replica/replica_state.h"
#include "repo/bucket_side.h"
#include "repo/check_store_data.h"
#include "repo/store_probe.h"
#include "repo/store_repository.h"
#include "repo/superblock_file.h"
#include "store/repository_paths.h"
#include "varve/replication.h"

namespace varve::repo {

namespace {

// Younger objects may belong to a head that this folder does not know yet.
constexpr std::int64_t kForeignSeconds = std::int64_t{24} * 60 * 60;

// The objects of the newest head that a folder knows.
struct Expected {
  std::string place;
  std::string repository_id;
  std::string head;                              // Its name; empty before the first one.
  std::map<std::string, std::uint64_t> objects;  // Lengths by name.
  std::set<std::string> others;                  // Objects that may exist, and need not.
  std::uint64_t lock_days = 0;                   // Days for which objects are locked.
  std::optional<bucket::ProbeRecord> probed;     // What the store did before.
};

Result<Expected> read_expected(io::FileSystem& files, const std::string& folder,
                               const std::optional<replica::ReplicaState>& known) {
  Expected expected;
  VARVE_TRY_ASSIGN(const auto text, read_superblock_text(files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  expected.repository_id = superblock.repository_id;
  if (!known) return expected;
  const auto& state = *known;
  VARVE_TRY_ASSIGN(expected.lock_days, state.number(replica::kLockDays));
  VARVE_TRY_ASSIGN(expected.probed, probe_record(state));
  VARVE_TRY_ASSIGN(const auto uploaded, state.uploaded());
  for (const auto& [key, extent] : uploaded) expected.others.insert(extent.object);
  VARVE_TRY_ASSIGN(const auto garbage, state.garbage(std::numeric_limits<std::int64_t>::max(),
                                                     std::numeric_limits<std::uint64_t>::max(),
                                                     std::numeric_limits<std::size_t>::max()));
  expected.others.insert(garbage.begin(), garbage.end());
  VARVE_TRY_ASSIGN(const auto head_text, state.head());
  if (!head_text) return expected;
  VARVE_TRY_ASSIGN(const auto head, replica::decode_head(*head_text));
  expected.head = replica::head_name(head.repository_id, head.number);
  expected.objects[expected.head] = head_text->size();
  for (const auto& object : head.catalog) expected.objects[object.name] = object.bytes;
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  for (const auto& [path, extents] : map) {
    for (const auto& extent : extents) {
      if (!extent.object.empty()) expected.objects[extent.object] = extent.object_bytes;
    }
  }
  return expected;
}

// Damages of one kind that are listed; further ones are only counted.
constexpr std::size_t kWeakLocksListed = 20;
// Clocks that differ by more than this get a note, in seconds.
constexpr std::int64_t kSkewMax = 60;

void note_differences(const bucket::ProbeRecord& before, const bucket::ProbeRecord& now,
                      StoreCheck& check) {
  for (const auto& text : bucket::differences(before.abilities, now.abilities)) {
    check.notes.push_back("the store changed: " + text);
  }
}

// Tries again what the store does. Without conditional requests, two writers could harm each other.
Result<void> check_abilities(bucket::Bucket& bucket, const base::Clock& clock,
                             const std::optional<bucket::ProbeRecord>& before,
                             std::optional<bucket::ProbeRecord>& now, StoreCheck& check) {
  const auto bytes = bucket.get_all(replica::kSuperblockName, format::kSuperblockBytesMax);
  if (!bytes && bytes.error().code() != ErrorCode::kNotFound) return bytes.error();
  if (!bytes) check.damages.push_back({replica::kSuperblockName, "is missing"});
  const auto probed = probe_store(bucket, {}, clock, LockProbe::kIfWanted);
  // Credentials that may only read need no abilities.
  if (!probed && probed.error().code() == ErrorCode::kNotPermitted) return {};
  if (!probed) return probed.error();
  now = *probed;
  if (before) {
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
      {replica::kSuperblockName,
       "the store does not honour conditional requests (If-None-Match) any more: two writers could "
       "harm each other. Do not write until it does"});
  return {};
}

// A head writes what has changed since the one before. This finds whatever it may have missed.
Result<void> check_catalog(io::FileSystem& files, const std::string& folder,
                           const replica::ReplicaState& state, const Expected& known,
                           StoreCheck& check) {
  const auto differences = replica::differences_from_copy(files, folder, state);
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

// Compares the locks with the setting. Returns the objects that a seal must lock again.
Result<std::map<std::string, std::int64_t>> check_locks(bucket::Bucket& bucket,
                                                        const Expected& expected,
                                                        std::int64_t now_s, StoreCheck& check) {
  std::map<std::string, std::int64_t> weak_names;
  if (expected.lock_days == 0) return weak_names;
  std::vector<std::string> names{replica::kSuperblockName};
  for (const auto& [name, bytes] : expected.objects) names.push_back(name);
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
                  weak.size(), expected.lock_days, replica::kLocksAtOnce));
  return weak_names;
}

// Keeps what the check found in the folder, unless another process uses it.
void keep_findings(io::FileSystem& files, const std::string& folder,
                   const std::optional<bucket::ProbeRecord>& probed,
                   const std::map<std::string, std::int64_t>& weak) {
  const auto lock = files.lock(store::RepositoryPaths(folder).lock());
  if (!lock) return;
  const auto keep = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto state, replica::ReplicaState::open(files, folder, false));
    if (probed) VARVE_TRY(set_probe_record(state, *probed));
    return state.set_lock_ends(weak);
  };
  const auto kept = keep();
  if (!kept) base::log(base::LogLevel::kInfo, kept.error().message());
}

}  // namespace

Result<StoreCheck> check_objects(const std::string& folder, const OpenOptions& options,
                                 const BucketHooks& hooks, bool reads_objects) {
  VARVE_TRY_ASSIGN(const auto files, open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, replica::read_config(*files, folder));
  StoreCheck check;
  if (!config) return check;
  VARVE_TRY_ASSIGN(auto state, replica::find_state(*files, folder));
  VARVE_TRY_ASSIGN(auto expected, read_expected(*files, folder, state));
  VARVE_TRY_ASSIGN(const auto bucket, bucket_opener(hooks, options.store.access)(*config));
  check.place = config->place;
  const auto prefix = expected.repository_id + "/";
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  const auto now = clock.now().seconds;
  auto missing = expected.objects;
  VARVE_TRY(
      bucket::list_all(*bucket, prefix, "", [&](const bucket::ObjectInfo& object) -> Result<void> {
        ++check.objects;
        check.bytes += object.bytes;
        const auto known = expected.objects.find(object.name);
        if (known != expected.objects.end()) {
          missing.erase(object.name);
          if (known->second == object.bytes) return {};
          check.damages.push_back(
              {object.name, fmt::format("has {} bytes, not {}", object.bytes, known->second)});
          return {};
        }
        const bool is_head = object.name.starts_with(replica::head_prefix(expected.repository_id));
        const bool is_young = now - object.modified.seconds < kForeignSeconds;
        if (is_head || is_young || expected.others.contains(object.name)) return {};
        ++check.foreign_objects;
        check.foreign_bytes += object.bytes;
        return {};
      }));
  for (const auto& [name, bytes] : missing) check.damages.push_back({name, "is missing"});
  if (reads_objects && state) VARVE_TRY(read_all_objects(*bucket, *state, check));
  if (config->reads_only) return check;
  if (state) VARVE_TRY(check_catalog(*files, folder, *state, expected, check));
  state.reset();  // keep_findings() opens it for writing.
  std::optional<bucket::ProbeRecord> probed;
  VARVE_TRY(check_abilities(*bucket, clock, expected.probed, probed, check));
  VARVE_TRY_ASSIGN(const auto weak,
                   check_locks(*bucket, expected, now + bucket->clock_ahead().value_or(0), check));
  keep_findings(*files, folder, probed, weak);
  return check;
}

}  // namespace varve::repo

namespace varve {

Result<StoreCheck> check_store(const std::string& folder, const OpenOptions& options,
                               bool reads_objects) {
  return repo::check_objects(folder, options, {}, reads_objects);
}

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
#include "remote/store_probe.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "format/superblock.h"
#include "remote/head.h"
#include "remote/object_lock_setting.h"
#include "remote/uploads.h"

namespace varve::remote {

namespace {

constexpr const char* kProbes = "probe/";
// Limit for a pass; the next pass removes more.
constexpr std::size_t kOldProbesMax = 10000;
constexpr std::int64_t kProbeSeconds = std::int64_t{24} * 60 * 60;
constexpr std::string_view kProbeKey = "abilities";  // In the state.

constexpr std::int64_t kRacesSeconds = 30 * kProbeSeconds;

// A time in the future was noted by a wrong clock.
bool needs_races(const std::optional<bucket::ProbeRecord>& before, std::int64_t now_s) {
  return !before || before->abilities.conditions != bucket::Conditions::kHonoured ||
         before->raced_s > now_s || now_s - before->raced_s > kRacesSeconds;
}

// The first request opens the connection, so that the clients begin the first race together, too.
Result<std::vector<std::unique_ptr<bucket::Bucket>>> open_racers(const ClientOpener& open) {
  std::vector<std::unique_ptr<bucket::Bucket>> clients;
  while (clients.size() < bucket::kRaceClients) {
    VARVE_TRY_ASSIGN(auto client, open());
    VARVE_TRY(client->list(kProbes, {}, 1));
    clients.push_back(std::move(client));
  }
  return clients;
}

}  // namespace

ClientOpener racer_opener(const BucketHooks& hooks, const StoreAccess& access,
                          const BucketConfig& config) {
  if (!hooks.opens_racers) return {};
  return [open = bucket_opener(hooks, access), config] { return open(config); };
}

Result<bucket::ProbeRecord> probe_store(bucket::Bucket& bucket, const base::Clock& clock,
                                        const ProbeRequest& request) {
  bucket::ProbeRecord record;
  record.seconds = clock.now().seconds;
  std::vector<std::unique_ptr<bucket::Bucket>> racers;
  bucket::Races races;
  if (request.open_client && needs_races(request.before, record.seconds)) {
    VARVE_TRY_ASSIGN(racers, open_racers(request.open_client));
    for (const auto& racer : racers) races.clients.push_back(racer.get());
    races.races = bucket::kRaces;
    record.raced_s = record.seconds;
  } else if (request.before) {
    record.raced_s = request.before->raced_s;
  }
  VARVE_TRY_ASSIGN(record.abilities, bucket::probe_abilities(bucket, kProbes, races));
  record.clock_ahead_s = bucket.clock_ahead().value_or(0);
  if (request.lock.on()) {
    VARVE_TRY(require_locks(bucket, request.lock, clock));
    record.abilities.locks = true;
  } else if (request.locks == LockProbe::kAlways) {
    VARVE_TRY_ASSIGN(const auto reason,
                     bucket::try_lock(bucket, kProbes, LockMode::kGovernance, record.seconds));
    record.abilities.locks = reason.empty();
  }
  return record;
}

void note_ignored_conditions(ReplicaState& state) {
  const auto note = [&state]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto record, probe_record(state));
    if (!record) record.emplace();
    record->abilities.conditions = bucket::Conditions::kIgnored;
    return set_probe_record(state, *record);
  };
  const auto noted = note();
  if (!noted) base::log(base::LogLevel::kWarning, noted.error().message());
}

void warn_of_unsafe_conditions(const bucket::Bucket& bucket, const ReplicaState& state) {
  const auto record = probe_record(state);
  if (!record || !*record) return;
  if ((*record)->abilities.conditions == bucket::Conditions::kHonoured) return;
  base::log(base::LogLevel::kWarning,
            bucket.describe() +
                " does not honour conditional requests (If-None-Match): if another folder writes "
                "to this repository, versions can be lost. Use another store (`varve copy`), and "
                "until then write from one folder only");
}

Result<void> remove_old_probes(bucket::Bucket& bucket, std::int64_t now_s) {
  std::vector<std::string> old;
  VARVE_TRY(
      bucket::list_all(bucket, kProbes, "", [&](const bucket::ObjectInfo& object) -> Result<void> {
        if (old.size() < kOldProbesMax && now_s - object.modified.seconds > kProbeSeconds) {
          old.push_back(object.name);
        }
        return {};
      }));
  for (const auto& name : old) {
    const auto removed = bucket.remove(name);
    if (!removed && removed.error().code() != ErrorCode::kNotPermitted) return removed;
  }
  return {};
}

Result<std::optional<bucket::ProbeRecord>> probe_record(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.text(kProbeKey));
  return text ? bucket::decode_probe(*text) : std::optional<bucket::ProbeRecord>();
}

Result<void> set_probe_record(ReplicaState& state, const bucket::ProbeRecord& record) {
  return state.set_text(kProbeKey, bucket::encode_probe(record));
}

Result<std::vector<StoreDamage>> weak_locks(bucket::Bucket& bucket,
                                            const std::vector<std::string>& objects,
                                            const LockCheck& check) {
  std::vector<StoreDamage> weak;
  Uploads requests({});
  for (const auto& name : objects) {
    const auto what = std::make_shared<std::string>();
    VARVE_TRY(requests.begin(
        0,
        [&bucket, &check, name, what]() -> Result<void> {
          const auto info = bucket.head(name);
          // A list tells of missing objects.
          if (!info && info.error().code() == ErrorCode::kNotFound) return {};
          if (!info) return info.error();
          if (!info->locked_until) {
            *what = "is not locked";
          } else if (info->locked_until->seconds < check.now_s + check.period_s / 4) {
            *what = "its lock ends at " + base::local_time_text(*info->locked_until);
          }
          return {};
        },
        [&weak, name, what]() -> Result<void> {
          if (!what->empty()) weak.push_back({name, *what});
          return {};
        }));
  }
  VARVE_TRY(requests.finish());
  return weak;
}

// A removed and re-created repository has a new id.
Error explain_lack(bucket::Bucket& bucket, const std::string& folder, const Error& error,
                   const std::string& repository_id) {
  const auto code = error.code();
  if (code != ErrorCode::kNoRepository && code != ErrorCode::kCorrupt) return error;
  const auto bytes = bucket.get_all(kSuperblockName, format::kSuperblockBytesMax);
  if (!bytes && bytes.error().code() != ErrorCode::kNotFound) return error;
  if (bytes) {
    const auto superblock = format::decode_superblock(base::as_text(*bytes));
    if (!superblock || superblock->repository_id == repository_id) return error;
  }
  return {ErrorCode::kNoRepository,
          fmt::format("{0} {1}, and {2} read the one before. It holds nothing that was not there: "
                      "remove the folder (`rm -r {2}`), and run the command again",
                      bucket.describe(),
                      bytes ? "has another repository now" : "has no repository any more", folder)};
}

}  // namespace varve::remote

// SPDX-License-Identifier: Apache-2.0
#include "cli/store_status_output.h"

#include <fmt/core.h>

#include <utility>

#include "cli/output.h"
#include "cli/store_usage_output.h"

namespace varve::cli {
namespace {

std::string age_of(const Timestamp& time, const RepositoryStatus& status) {
  return age_text(seconds_since(time, status.now)) + " ago";
}

std::string requests_text(const StoreUsage& usage) {
  std::string text;
  for (const auto& one : usage.requests) {
    if (one.requests == 0) continue;
    const auto bytes = one.bytes_sent + one.bytes_received;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.requests, one.kind);
    if (bytes != 0) text += fmt::format(" ({})", size_text(bytes, false));
  }
  return text.empty() ? "none" : text;
}

std::string abilities_text(const ReplicationInfo& store) {
  std::string text;
  for (const auto& ability : store.abilities) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", ability.name, ability.value);
  }
  return text;
}

std::string lease_text(const StoreLease& lease) {
  auto text = fmt::format("{} on host {} in {}", printable(lease.user), printable(lease.host),
                          printable(lease.folder));
  if (lease.since.seconds != 0) text += " since " + time_text(lease.since);
  return text;
}

}  // namespace

std::vector<std::vector<std::string>> store_rows(const RepositoryStatus& status) {
  const auto& store = *status.replication;
  std::vector<std::vector<std::string>> rows{
      {store.place, store.head == 0 ? std::string("nothing yet")
                                    : fmt::format("state {}, {}", store.head,
                                                  age_of(store.replicated_at, status))}};
  if (!store.reads_only) {
    rows.push_back({"staged", fmt::format("{} of {} before writers wait",
                                          size_text(status.staged.bytes, false),
                                          size_text(status.staged.bytes_max, false))});
  }
  if (status.lease) rows.push_back({"writer", lease_text(*status.lease)});
  if (store.lock_days != 0) {
    auto text = fmt::format("{} days", store.lock_days);
    if (store.locks_end.seconds != 0) text += "; the first ends on " + time_text(store.locks_end);
    rows.push_back({"object lock", std::move(text)});
  }
  if (status.store_usage) {
    const auto& usage = *status.store_usage;
    rows.push_back(
        {"stored", fmt::format("{} in {} objects", size_text(usage.bytes, false), usage.objects)});
    rows.push_back({"requests", requests_text(usage)});
  }
  if (!store.checks.empty()) rows.push_back({"checks", checks_text(store.checks, status.now)});
  if (!store.abilities.empty()) {
    rows.push_back({"store", abilities_text(store) + "; tried " + age_of(store.probed_at, status)});
  }
  return rows;
}

void print_store_status_json(const RepositoryStatus& status) {
  const auto& store = *status.replication;
  Json object{{"place", store.place}, {"head", store.head}, {"reads_only", store.reads_only}};
  if (store.head != 0) put_time(object, "replicated_at", store.replicated_at);
  if (!store.reads_only) {
    object["staged_bytes"] = status.staged.bytes;
    object["staging_max_bytes"] = status.staged.bytes_max;
    object["keys_pending"] = status.changes.keys;
    object["settings_pending"] = status.changes.settings;
    object["deletions_pending"] = status.changes.deleted_versions;
  }
  if (status.lease) {
    put_name(object, "writer_host", status.lease->host);
    put_name(object, "writer_user", status.lease->user);
    put_name(object, "writer_folder", status.lease->folder);
    if (status.lease->since.seconds != 0) put_time(object, "writer_since", status.lease->since);
  }
  if (store.lock_days != 0) {
    object["lock_days"] = store.lock_days;
    if (store.locks_end.seconds != 0) put_time(object, "locks_end_at", store.locks_end);
  }
  if (!store.abilities.empty()) {
    put_time(object, "probed_at", store.probed_at);
    object["clock_ahead_seconds"] = store.clock_ahead_s;
  }
  if (!store.checks.empty()) {
    auto& checks = object["checks"] = Json::array();
    for (const EarlierCheck& check : store.checks) {
      Json one{{"depth", name_of(check.depth)}, {"damages", check.damages}};
      put_time(one, "ended_at", {check.ended_at, 0});
      checks.push_back(std::move(one));
    }
  }
  print_json("object_store", std::move(object));
  for (const auto& ability : store.abilities) {
    print_json("store_ability", {{"ability", ability.name}, {"value", ability.value}});
  }
  if (status.store_usage) print_store_usage_json(*status.store_usage, nullptr);
}

}  // namespace varve::cli

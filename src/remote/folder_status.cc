// SPDX-License-Identifier: Apache-2.0
// Reports the status of a folder and of its object store, without a request.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bucket/abilities.h"
#include "maintain/check_record.h"
#include "remote/bucket_config.h"
#include "remote/failure_note.h"
#include "remote/head.h"
#include "remote/object_locks.h"
#include "remote/replica_state.h"
#include "remote/staged_data.h"
#include "remote/store_probe.h"
#include "store/superblock_text.h"
#include "varve/remote_folder.h"

namespace varve {

std::string how_to_write_again(const std::string& place) {
  return "To write again, attach another folder: `varve attach --write " + place + " DIR`";
}

Result<std::optional<ReplicationInfo>> RemoteFolder::info() const {
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(path_, trust_owner_));
  VARVE_TRY_ASSIGN(const auto config, remote::read_config(*files, path_));
  if (!config) return std::optional<ReplicationInfo>();
  ReplicationInfo info;
  info.place = config->place;
  info.reads_only = config->reads_only;
  VARVE_TRY_ASSIGN(const auto found, remote::find_state(*files, path_));
  if (!found) return std::optional(info);
  const auto& state = *found;
  info.checks = maintain::read_earlier_checks(*files, remote::replica_folder(path_));
  VARVE_TRY_ASSIGN(const auto probed, remote::probe_record(state));
  if (probed) {
    for (auto& [name, value] : bucket::texts_of(probed->abilities)) {
      info.abilities.push_back({std::move(name), std::move(value)});
    }
    info.probed_at = {probed->seconds, 0};
    info.clock_ahead_s = probed->clock_ahead_s;
  }
  VARVE_TRY_ASSIGN(const auto days, state.number(remote::kLockDays));
  info.lock_days = static_cast<std::uint32_t>(days);
  VARVE_TRY_ASSIGN(const auto end, state.number(remote::kLocksEnd));
  info.locks_end = {static_cast<std::int64_t>(end), 0};
  VARVE_TRY_ASSIGN(const auto fenced, state.fenced());
  info.fenced = fenced.value_or("");
  VARVE_TRY_ASSIGN(info.failure, remote::noted_failure(state));
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return std::optional(info);
  VARVE_TRY_ASSIGN(const auto head, remote::decode_head(*text));
  info.head = head.number;
  info.replicated_at = {head.seconds, 0};
  return std::optional(info);
}

Result<StagedData> RemoteFolder::staged_data() const {
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(path_, trust_owner_));
  VARVE_TRY_ASSIGN(const auto config, remote::read_config(*files, path_));
  StagedData data;
  if (!config || config->reads_only) return data;
  data.bytes_max = remote::staging_bytes_of(*config);
  remote::ObjectMap objects;
  VARVE_TRY_ASSIGN(const auto state, remote::find_state(*files, path_));
  if (state) {
    VARVE_TRY_ASSIGN(objects, state->objects());
  }
  VARVE_TRY_ASSIGN(data.bytes, remote::staged_bytes(*files, path_, objects));
  return data;
}

Result<std::optional<StoreUsage>> RemoteFolder::usage() const {
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(path_, trust_owner_));
  VARVE_TRY_ASSIGN(const auto config, remote::read_config(*files, path_));
  if (!config) return std::optional<StoreUsage>();
  StoreUsage usage;
  usage.place = config->place;
  VARVE_TRY_ASSIGN(const auto found, remote::find_state(*files, path_));
  bucket::Traffic traffic{};
  if (found) {
    const auto& state = *found;
    VARVE_TRY_ASSIGN(traffic, state.traffic());
    VARVE_TRY_ASSIGN(usage.dropped_objects, state.garbage().count());
    VARVE_TRY_ASSIGN(const auto objects, state.objects());
    VARVE_TRY_ASSIGN(const auto text, state.head());
    std::map<std::string, std::uint64_t> sizes;
    for (const auto& [path, extents] : objects) {
      for (const auto& extent : extents) {
        if (!extent.object.empty()) sizes[extent.object] = extent.object_bytes;
      }
    }
    if (text) {
      VARVE_TRY_ASSIGN(const auto head, remote::decode_head(*text));
      for (const auto& object : head.catalog) sizes[object.name] = object.bytes;
      sizes[remote::head_name(head.repository_id, head.number)] = text->size();
    }
    usage.objects = sizes.size();
    for (const auto& [name, bytes] : sizes) usage.bytes += bytes;
  }
  for (std::size_t kind = 0; kind < traffic.size(); ++kind) {
    const auto& counts = traffic[kind];
    usage.requests.push_back({std::string(name_of(static_cast<bucket::RequestKind>(kind))),
                              counts.requests, counts.repeated, counts.bytes_sent,
                              counts.bytes_received});
  }
  return std::optional(std::move(usage));
}

}  // namespace varve

// SPDX-License-Identifier: Apache-2.0
#include "control/upkeep_json.h"

#include <cstdint>
#include <utility>

#include "control/json_fields.h"

namespace varve::control {
Json upkeep_to_json(const UpkeepSettings& settings) {
  Json object{{"by_claimed", settings.keep.by_claimed}};
  for (const auto& rule : kCountRules) object[rule.name] = settings.keep.*rule.count;
  if (settings.keep.within_seconds) object["within_seconds"] = *settings.keep.within_seconds;
  if (settings.arrange_bytes_per_second) {
    object["arrange_bytes_per_second"] = *settings.arrange_bytes_per_second;
  }
  if (!settings.guards_sources) object["guards_sources"] = false;
  if (settings.object_lock.on()) {
    object["object_lock_days"] = settings.object_lock.days;
    object["object_lock_governance"] = settings.object_lock.mode == LockMode::kGovernance;
  }
  return object;
}

std::optional<UpkeepSettings> upkeep_from_json(const Json& object) {
  Fields fields(object);
  UpkeepSettings settings;
  settings.keep.by_claimed = fields.flag("by_claimed");
  for (const auto& rule : kCountRules) settings.keep.*rule.count = fields.u32(rule.name);
  if (fields.has("within_seconds")) settings.keep.within_seconds = fields.count("within_seconds");
  if (fields.has("arrange_bytes_per_second")) {
    settings.arrange_bytes_per_second = fields.count("arrange_bytes_per_second");
  }
  if (fields.has("guards_sources")) settings.guards_sources = fields.flag("guards_sources");
  if (fields.has("object_lock_days")) {
    settings.object_lock.days = fields.u32("object_lock_days");
    settings.object_lock.mode =
        fields.flag("object_lock_governance") ? LockMode::kGovernance : LockMode::kCompliance;
  }
  if (!fields.ok()) return std::nullopt;
  return settings;
}

void put_repository_settings(const Request& request, Json& line) {
  if (request.operation == Operation::kUpkeep && request.upkeep.settings) {
    line["upkeep"] = upkeep_to_json(*request.upkeep.settings);
  }
  if (request.operation == Operation::kPoolIndex && request.pool_index.choice) {
    line["pool_index"] = pool_index_text(*request.pool_index.choice);
  }
}

bool take_repository_settings(const Json& object, Request& request) {
  if (request.operation == Operation::kPoolIndex && object.find("pool_index") != nullptr) {
    Fields fields(object);
    const auto choice = parse_pool_index(fields.text("pool_index"));
    if (!choice || !fields.ok()) return false;
    request.pool_index.choice = *choice;
  }
  if (request.operation == Operation::kUpkeep && object.find("upkeep") != nullptr) {
    request.upkeep.settings = upkeep_from_json(*object.find("upkeep"));
    return request.upkeep.settings.has_value();
  }
  return true;
}

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
#include "control/upkeep_json.h"

#include "varve/retention.h"

namespace varve::control {

Json JsonOf<UpkeepSettings>::write(const UpkeepSettings& settings) {
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

std::optional<UpkeepSettings> JsonOf<UpkeepSettings>::read(const Json& json) {
  Fields fields(json);
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

}  // namespace varve::control

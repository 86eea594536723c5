// SPDX-License-Identifier: Apache-2.0
#include "control/version_json.h"

#include "control/json_fields.h"

namespace varve::control {

Json time_to_json(const Timestamp& time) {
  return {{"seconds", time.seconds}, {"nanoseconds", time.nanoseconds}};
}

std::optional<Timestamp> time_from_json(const Json& object, const char* name) {
  const Json* member = object.find(name);
  if (member == nullptr) return std::nullopt;
  Fields fields(*member);
  Timestamp time;
  time.seconds = fields.integer("seconds");
  time.nanoseconds = fields.u32("nanoseconds");
  if (!fields.ok()) return std::nullopt;
  return time;
}

Json version_to_json(const VersionInfo& info) {
  Json object{{"series_id", static_cast<std::uint32_t>(info.series)},
              {"number", static_cast<std::uint32_t>(info.number)},
              {"series", text_to_json(info.series_name)},
              {"name", text_to_json(info.name)},
              {"sealed", info.state == VersionState::kSealed},
              {"opened_at", time_to_json(info.opened_at)},
              {"sealed_at", time_to_json(info.sealed_at)},
              {"entries", info.entries},
              {"logical_bytes", info.logical_bytes},
              {"unique_bytes", info.unique_bytes},
              {"stored_bytes", info.stored_bytes}};
  if (info.claimed_at) object["claimed_at"] = time_to_json(*info.claimed_at);
  if (info.problems != 0) object["problems"] = info.problems;
  return object;
}

std::optional<VersionInfo> version_from_json(const Json& object) {
  Fields fields(object);
  VersionInfo info;
  info.series = static_cast<SeriesId>(fields.u32("series_id"));
  info.number = static_cast<VersionNumber>(fields.u32("number"));
  info.series_name = fields.text("series");
  info.name = fields.text("name");
  info.state = fields.flag("sealed") ? VersionState::kSealed : VersionState::kOpen;
  info.entries = fields.count("entries");
  info.logical_bytes = fields.count("logical_bytes");
  info.unique_bytes = fields.count("unique_bytes");
  info.stored_bytes = fields.count("stored_bytes");
  if (fields.has("problems")) info.problems = fields.count("problems");
  const auto opened_at = time_from_json(object, "opened_at");
  const auto sealed_at = time_from_json(object, "sealed_at");
  if (fields.has("claimed_at")) {
    info.claimed_at = time_from_json(object, "claimed_at");
    if (!info.claimed_at) return std::nullopt;
  }
  if (!fields.ok() || !opened_at || !sealed_at) return std::nullopt;
  info.opened_at = *opened_at;
  info.sealed_at = *sealed_at;
  return info;
}

}  // namespace varve::control

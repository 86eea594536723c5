// SPDX-License-Identifier: Apache-2.0
#include "control/series_settings_json.h"

#include "control/json_fields.h"

namespace varve::control {

Json changes_to_json(const SeriesOptions& changes) {
  Json object = Json::object();
  if (changes.placement) object["placement"] = placement_name(*changes.placement);
  if (changes.rewrite) object["rewrite"] = rewrite_name(*changes.rewrite);
  return object;
}

std::optional<SeriesOptions> changes_from_json(const Json& object) {
  Fields fields(object);
  SeriesOptions changes;
  if (fields.has("placement")) {
    const auto placement = parse_placement(fields.text("placement"));
    if (!placement) return std::nullopt;
    changes.placement = *placement;
  }
  if (fields.has("rewrite")) {
    const auto rewrite = parse_rewrite(fields.text("rewrite"));
    if (!rewrite) return std::nullopt;
    changes.rewrite = *rewrite;
  }
  if (!fields.ok()) return std::nullopt;
  return changes;
}

}  // namespace varve::control

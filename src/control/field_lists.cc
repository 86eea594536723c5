// SPDX-License-Identifier: Apache-2.0
#include "control/field_lists.h"

namespace varve::control {
namespace {

/// Returns the value of a word, or nullopt for an unknown word.
template <typename Value, typename Parse>
std::optional<Value> of_word(const Json& json, const Parse& parse) {
  const auto word = text_from_json(json);
  if (!word) return std::nullopt;
  const auto value = parse(*word);
  return value ? std::optional<Value>(*value) : std::nullopt;
}

}  // namespace

// The report of an earlier Varve has no `damaged`.
Json JsonOf<ArrangeReport>::write(const ArrangeReport& report) {
  Json object = JsonOf<ArrangeProgress>::write(report.done);
  object["finished"] = report.finished;
  if (report.done.damaged != 0) object["damaged"] = report.done.damaged;
  return object;
}

std::optional<ArrangeReport> JsonOf<ArrangeReport>::read(const Json& json) {
  Fields fields(json);
  ArrangeReport report;
  take_fields(fields, report.done);
  fields.take("finished", report.finished);
  if (fields.has("damaged")) fields.take("damaged", report.done.damaged);
  if (!fields.ok()) return std::nullopt;
  return report;
}

std::optional<ArrangePolicyKind> JsonOf<ArrangePolicyKind>::read(const Json& json) {
  return of_word<ArrangePolicyKind>(json, arrange_policy);
}

std::optional<Placement> JsonOf<Placement>::read(const Json& json) {
  return of_word<Placement>(json, parse_placement);
}

std::optional<Rewrite> JsonOf<Rewrite>::read(const Json& json) {
  return of_word<Rewrite>(json, parse_rewrite);
}

std::optional<PoolIndexChoice> JsonOf<PoolIndexChoice>::read(const Json& json) {
  return of_word<PoolIndexChoice>(json, parse_pool_index);
}

}  // namespace varve::control

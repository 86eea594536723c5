// SPDX-License-Identifier: Apache-2.0
#include "control/damage_json.h"

#include <utility>

#include "control/json_fields.h"

namespace varve::control {

void put_damage(const Reply& reply, Json& line) {
  if (!reply.damage) return;
  Json names = Json::array();
  for (const auto& name : reply.damage->lost.names) names.push_back({{"name", text_to_json(name)}});
  line["known_damage"] = {{"changed", reply.damage->changed},
                          {"files", reply.damage->lost.files},
                          {"names", std::move(names)}};
}

bool take_damage(const Json& object, Reply& reply) {
  const auto* const found = object.find("known_damage");
  if (found == nullptr) return true;
  Fields fields(*found);
  auto& damage = reply.damage.emplace();
  damage.changed = fields.count("changed");
  damage.lost.files = fields.count("files");
  const auto* const names = found->find("names");
  if (!fields.ok() || names == nullptr || names->elements() == nullptr) return false;
  for (const Json& element : *names->elements()) {
    Fields one(element);
    damage.lost.names.push_back(one.text("name"));
    if (!one.ok()) return false;
  }
  return damage.lost.names.size() <= kLostFilesNamed;
}

}  // namespace varve::control

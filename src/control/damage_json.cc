// SPDX-License-Identifier: Apache-2.0
#include "control/damage_json.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace varve::control {
namespace {

struct LostName {
  std::string name{};
  static constexpr auto fields() { return std::tuple{Field{"name", &LostName::name}}; }
};

struct Damaged {
  std::uint64_t changed = 0;
  std::uint64_t files = 0;
  std::vector<LostName> names{};
  static constexpr auto fields() {
    return std::tuple{Field{"changed", &Damaged::changed}, Field{"files", &Damaged::files},
                      Field{"names", &Damaged::names}};
  }
};

}  // namespace

Json JsonOf<DamageReply>::write(const DamageReply& damage) {
  Damaged listed{damage.changed, damage.lost.files};
  for (const auto& name : damage.lost.names) listed.names.push_back({name});
  return JsonOf<Damaged>::write(listed);
}

std::optional<DamageReply> JsonOf<DamageReply>::read(const Json& json) {
  auto listed = JsonOf<Damaged>::read(json);
  if (!listed || listed->names.size() > kLostFilesNamed) return std::nullopt;
  DamageReply damage{listed->changed, {listed->files, {}}};
  for (auto& one : listed->names) damage.lost.names.push_back(std::move(one.name));
  return damage;
}

}  // namespace varve::control

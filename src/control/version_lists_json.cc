// SPDX-License-Identifier: Apache-2.0
#include "control/version_lists_json.h"

#include <utility>

#include "control/json_fields.h"
#include "control/version_json.h"

namespace varve::control {

Json version_numbers_to_json(const std::vector<VersionNumber>& numbers) {
  Json list = Json::array();
  for (const VersionNumber number : numbers) list.push_back(static_cast<std::uint32_t>(number));
  return list;
}

std::optional<std::vector<VersionNumber>> version_numbers_from(const Json& object) {
  const Json* versions = object.find("versions");
  if (versions == nullptr || versions->elements() == nullptr) return std::nullopt;
  std::vector<VersionNumber> numbers;
  for (const Json& version : *versions->elements()) {
    const auto number = version.count();
    if (!number || *number > 0xffffffffU) return std::nullopt;
    numbers.push_back(static_cast<VersionNumber>(*number));
  }
  return numbers;
}

Json version_keys_to_json(const std::vector<VersionKey>& versions) {
  Json list = Json::array();
  for (const auto& [series, number] : versions) {
    list.push_back({{"series", static_cast<std::uint32_t>(series)},
                    {"version", static_cast<std::uint32_t>(number)}});
  }
  return list;
}

std::optional<std::vector<VersionKey>> version_keys_from(const Json& list) {
  if (list.elements() == nullptr) return std::nullopt;
  std::vector<VersionKey> keys;
  for (const Json& version : *list.elements()) {
    Fields fields(version);
    keys.push_back({static_cast<SeriesId>(fields.u32("series")),
                    static_cast<VersionNumber>(fields.u32("version"))});
    if (!fields.ok()) return std::nullopt;
  }
  return keys;
}

Json held_to_json(const std::vector<HeldVersion>& held) {
  Json list = Json::array();
  for (const HeldVersion& version : held) {
    list.push_back({{"version", static_cast<std::uint32_t>(version.number)},
                    {"reason", text_to_json(version.reason)}});
  }
  return list;
}

std::optional<std::vector<HeldVersion>> held_from(const Json& object) {
  const Json* list = object.find("held");
  if (list == nullptr || list->elements() == nullptr) return std::nullopt;
  std::vector<HeldVersion> all;
  for (const Json& version : *list->elements()) {
    Fields fields(version);
    HeldVersion held;
    held.number = static_cast<VersionNumber>(fields.u32("version"));
    held.reason = fields.text("reason");
    if (!fields.ok()) return std::nullopt;
    all.push_back(std::move(held));
  }
  return all;
}

std::optional<std::vector<VersionInfo>> versions_from(const Json& list) {
  if (list.elements() == nullptr) return std::nullopt;
  std::vector<VersionInfo> all;
  for (const Json& object : *list.elements()) {
    auto version = version_from_json(object);
    if (!version) return std::nullopt;
    all.push_back(*std::move(version));
  }
  return all;
}

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
#include "control/json_fields.h"

#include <algorithm>

namespace varve::control {

using Json = nlohmann::json;

Json text_to_json(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c > 0 && c < 0x7f; });
  if (plain) return Json(std::string(text));
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

std::string Fields::text(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  std::string result;
  if (!value->is_array()) return failed<std::string>();
  for (const Json& byte : *value) {
    if (!byte.is_number_unsigned() || byte.get<std::uint64_t>() > 255) {
      return failed<std::string>();
    }
    result += static_cast<char>(byte.get<std::uint64_t>());
  }
  return result;
}

std::int64_t Fields::integer(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return 0;
  return value->is_number_integer() ? value->get<std::int64_t>() : failed<std::int64_t>();
}

std::uint64_t Fields::count(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return 0;
  return value->is_number_unsigned() ? value->get<std::uint64_t>() : failed<std::uint64_t>();
}

std::uint32_t Fields::u32(const char* name) {
  const std::uint64_t value = count(name);
  return value <= 0xffffffffU ? static_cast<std::uint32_t>(value) : failed<std::uint32_t>();
}

bool Fields::flag(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return false;
  return value->is_boolean() ? value->get<bool>() : failed<bool>();
}

const Json* Fields::member(const char* name) {
  if (!ok_) return nullptr;
  const auto place = object_.find(name);
  if (place == object_.end()) {
    ok_ = false;
    return nullptr;
  }
  return &*place;
}

}  // namespace varve::control

// SPDX-License-Identifier: Apache-2.0
#include "control/json_fields.h"

#include <algorithm>

namespace varve::control {

Json text_to_json(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c > 0 && c < 0x7f; });
  if (plain) return text;
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

std::string Fields::text(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return {};
  if (const std::string* plain = value->text()) return *plain;
  const std::vector<Json>* bytes = value->elements();
  if (bytes == nullptr) return failed<std::string>();
  std::string result;
  for (const Json& byte : *bytes) {
    const auto number = byte.count();
    if (!number || *number > 255) return failed<std::string>();
    result += static_cast<char>(*number);
  }
  return result;
}

std::int64_t Fields::integer(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return 0;
  const auto number = value->integer();
  return number ? *number : failed<std::int64_t>();
}

std::uint64_t Fields::count(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return 0;
  const auto number = value->count();
  return number ? *number : failed<std::uint64_t>();
}

std::uint32_t Fields::u32(const char* name) {
  const std::uint64_t value = count(name);
  return value <= 0xffffffffU ? static_cast<std::uint32_t>(value) : failed<std::uint32_t>();
}

bool Fields::flag(const char* name) {
  const Json* value = member(name);
  if (value == nullptr) return false;
  const auto flag = value->flag();
  return flag ? *flag : failed<bool>();
}

const Json* Fields::member(const char* name) {
  if (!ok_) return nullptr;
  const Json* value = object_.find(name);
  ok_ = value != nullptr;
  return value;
}

}  // namespace varve::control

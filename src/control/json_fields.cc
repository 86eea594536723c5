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

std::optional<std::string> text_from_json(const Json& value) {
  if (const std::string* const plain = value.text()) return *plain;
  const std::vector<Json>* const bytes = value.elements();
  if (bytes == nullptr) return std::nullopt;
  std::string result;
  for (const Json& byte : *bytes) {
    const auto number = byte.count();
    if (!number || *number > 255) return std::nullopt;
    result += static_cast<char>(*number);
  }
  return result;
}

std::string Fields::text(const char* name) { return taken<std::string>(name); }
std::uint64_t Fields::count(const char* name) { return taken<std::uint64_t>(name); }
std::uint32_t Fields::u32(const char* name) { return taken<std::uint32_t>(name); }
bool Fields::flag(const char* name) { return taken<bool>(name); }

Json JsonOf<std::vector<std::string>>::write(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(JsonOf<ListedText>::write({text}));
  return list;
}

std::optional<std::vector<std::string>> JsonOf<std::vector<std::string>>::read(const Json& json) {
  auto listed = JsonOf<std::vector<ListedText>>::read(json);
  if (!listed) return std::nullopt;
  std::vector<std::string> texts;
  for (ListedText& one : *listed) texts.push_back(std::move(one.text));
  return texts;
}

}  // namespace varve::control

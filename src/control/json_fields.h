// SPDX-License-Identifier: Apache-2.0
// Writes and reads the JSON of the control socket: values by type, structures by lists of fields.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/field.h"
#include "control/json.h"

namespace varve::control {

/// Converts a name to JSON. Names are bytes, but JSON strings are Unicode. Therefore plain ASCII
/// becomes a string, and any other name an array of byte values.
[[nodiscard]] Json text_to_json(std::string_view text);
/// Returns the name, or nullopt if `value` is no result of text_to_json().
[[nodiscard]] std::optional<std::string> text_from_json(const Json& value);

/// Reads the members of an object. ok() returns false after a member was missing or of a wrong
/// type.
class Fields {
 public:
  /// Lifetime: `object` must outlive the Fields.
  explicit Fields(const Json& object) : object_(object), ok_(object.is_object()) {}

  std::string text(const char* name);
  std::uint64_t count(const char* name);
  std::uint32_t u32(const char* name);
  bool flag(const char* name);
  /// Reads a member of any type with a JsonOf.
  template <typename Value>
  void take(const char* name, Value& value);
  [[nodiscard]] bool has(const char* name) const { return ok_ && object_.find(name) != nullptr; }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  template <typename Value>
  Value taken(const char* name) {
    Value value{};
    take(name, value);
    return value;
  }

  const Json& object_;
  bool ok_;
};

/// The JSON form of a type: write() returns the JSON of a value, read() returns the value, or
/// nullopt if the JSON is no result of write().
template <typename Value>
struct JsonOf;

template <>
struct JsonOf<bool> {
  static Json write(bool value) { return value; }
  static std::optional<bool> read(const Json& json) { return json.flag(); }
};
template <>
struct JsonOf<std::int64_t> {
  static Json write(std::int64_t value) { return value; }
  static std::optional<std::int64_t> read(const Json& json) { return json.integer(); }
};
template <>
struct JsonOf<std::uint64_t> {
  static Json write(std::uint64_t value) { return value; }
  static std::optional<std::uint64_t> read(const Json& json) { return json.count(); }
};
template <>
struct JsonOf<std::uint32_t> {
  static Json write(std::uint32_t value) { return value; }
  static std::optional<std::uint32_t> read(const Json& json) {
    const auto value = json.count();
    if (!value || *value > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
  }
};
template <>
struct JsonOf<std::string> {
  static Json write(const std::string& value) { return text_to_json(value); }
  static std::optional<std::string> read(const Json& json) { return text_from_json(json); }
};

/// An id is a number.
template <typename Id>
requires std::is_enum_v<Id> && std::same_as<std::underlying_type_t<Id>, std::uint32_t>
struct JsonOf<Id> {
  static Json write(Id id) { return static_cast<std::uint32_t>(id); }
  static std::optional<Id> read(const Json& json) {
    const auto number = JsonOf<std::uint32_t>::read(json);
    return number ? std::optional(static_cast<Id>(*number)) : std::nullopt;
  }
};

/// A list of texts has an object for each text: a text may be an array by itself.
struct ListedText {
  std::string text{};
  static constexpr auto fields() { return std::tuple{Field{"text", &ListedText::text}}; }
};

template <typename Element>
struct JsonOf<std::vector<Element>> {
  static Json write(const std::vector<Element>& values) {
    Json list = Json::array();
    for (const Element& value : values) list.push_back(JsonOf<Element>::write(value));
    return list;
  }
  static std::optional<std::vector<Element>> read(const Json& json) {
    if (json.elements() == nullptr) return std::nullopt;
    std::vector<Element> values;
    for (const Json& element : *json.elements()) {
      auto value = JsonOf<Element>::read(element);
      if (!value) return std::nullopt;
      values.push_back(*std::move(value));
    }
    return values;
  }
};
template <>
struct JsonOf<std::vector<std::string>> {
  [[nodiscard]] static Json write(const std::vector<std::string>& texts);
  [[nodiscard]] static std::optional<std::vector<std::string>> read(const Json& json);
};

template <typename Value>
void Fields::take(const char* name, Value& value) {
  const Json* const member = ok_ ? object_.find(name) : nullptr;
  auto read = member != nullptr ? JsonOf<Value>::read(*member) : std::nullopt;
  ok_ = read.has_value();
  if (read) value = *std::move(read);
}

template <typename Value>
inline constexpr bool kIsOptional = false;
template <typename Value>
inline constexpr bool kIsOptional<std::optional<Value>> = true;

template <typename List, typename Structure>
void put_listed(const List& list, const Structure& structure, Json& object);
template <typename List, typename Structure>
void take_listed(const List& list, Fields& fields, Structure& structure);

/// Adds the fields of a structure to an object, by the structure's list of fields.
template <ListsFields Structure>
void put_fields(const Structure& structure, Json& object) {
  put_listed(FieldsOf<Structure>::list(), structure, object);
}
/// Reads the fields that put_fields() adds. Fields::ok() then says whether all were present.
template <ListsFields Structure>
void take_fields(Fields& fields, Structure& structure) {
  take_listed(FieldsOf<Structure>::list(), fields, structure);
}

template <typename Structure, typename Value>
void put_listed_field(const Field<Structure, Value>& field, const Structure& structure,
                      Json& object) {
  const Value& value = structure.*field.value;
  if constexpr (kIsOptional<Value>) {
    if (value) object[field.name] = JsonOf<typename Value::value_type>::write(*value);
  } else {
    if constexpr (std::is_arithmetic_v<Value> || std::same_as<Value, std::string>) {
      if (field.presence == Presence::kUnlessDefault && value == Structure{}.*field.value) return;
    }
    object[field.name] = JsonOf<Value>::write(value);
  }
}
template <typename Structure, typename Value>
void put_listed_field(const Inlined<Structure, Value>& field, const Structure& structure,
                      Json& object) {
  put_fields(structure.*field.value, object);
}
template <typename Structure, typename Value>
void take_listed_field(const Field<Structure, Value>& field, Fields& fields, Structure& structure) {
  Value& value = structure.*field.value;
  if constexpr (kIsOptional<Value>) {
    if (fields.has(field.name)) fields.take(field.name, value.emplace());
  } else {
    if (field.presence == Presence::kAlways || fields.has(field.name)) {
      fields.take(field.name, value);
    }
  }
}
template <typename Structure, typename Value>
void take_listed_field(const Inlined<Structure, Value>& field, Fields& fields,
                       Structure& structure) {
  take_fields(fields, structure.*field.value);
}

/// As put_fields(), with a list of some fields.
template <typename List, typename Structure>
void put_listed(const List& list, const Structure& structure, Json& object) {
  std::apply([&](const auto&... field) { (put_listed_field(field, structure, object), ...); },
             list);
}
/// As take_fields(), with a list of some fields.
template <typename List, typename Structure>
void take_listed(const List& list, Fields& fields, Structure& structure) {
  std::apply([&](const auto&... field) { (take_listed_field(field, fields, structure), ...); },
             list);
}

template <ListsFields Structure>
struct JsonOf<Structure> {
  static Json write(const Structure& structure) {
    Json object = Json::object();
    put_fields(structure, object);
    return object;
  }
  static std::optional<Structure> read(const Json& json) {
    Fields fields(json);
    Structure structure{};
    take_fields(fields, structure);
    if (!fields.ok()) return std::nullopt;
    return structure;
  }
};

}  // namespace varve::control

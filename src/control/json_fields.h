// SPDX-License-Identifier: Apache-2.0
// Reads and writes members of the JSON objects of the control socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "control/json.h"

namespace varve::control {

/// Converts a name to JSON. Names are bytes, but JSON strings are Unicode. Therefore plain ASCII
/// becomes a string, and any other name an array of byte values.
[[nodiscard]] Json text_to_json(std::string_view text);

/// Reads the members of an object. ok() returns false after a member was missing or of a wrong
/// type.
class Fields {
 public:
  /// Lifetime: `object` must outlive the Fields.
  explicit Fields(const Json& object) : object_(object), ok_(object.is_object()) {}

  std::string text(const char* name);
  std::int64_t integer(const char* name);
  std::uint64_t count(const char* name);
  std::uint32_t u32(const char* name);
  bool flag(const char* name);
  [[nodiscard]] bool has(const char* name) const { return ok_ && object_.find(name) != nullptr; }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  const Json* member(const char* name);
  template <typename T>
  T failed() {
    ok_ = false;
    return T{};
  }
  const Json& object_;
  bool ok_;
};

inline void put_value(Json& object, const char* name, const std::string& value) {
  object[name] = text_to_json(value);
}
template <typename Number>
void put_value(Json& object, const char* name, const Number& value) {
  object[name] = value;
}
inline void take_value(Fields& fields, const char* name, std::string& value) {
  value = fields.text(name);
}
inline void take_value(Fields& fields, const char* name, std::uint64_t& value) {
  value = fields.count(name);
}
inline void take_value(Fields& fields, const char* name, std::uint32_t& value) {
  value = fields.u32(name);
}
inline void take_value(Fields& fields, const char* name, bool& value) { value = fields.flag(name); }

/// Adds the fields of a structure to an object, by the structure's list of fields.
template <typename Structure>
void put_fields(const Structure& structure, Json& object) {
  std::apply(
      [&](const auto&... field) { (put_value(object, field.name, structure.*field.value), ...); },
      Structure::fields());
}
/// Reads the fields that put_fields() adds. Fields::ok() then says whether all were present.
template <typename Structure>
void take_fields(Fields& fields, Structure& structure) {
  const auto take = [&](const auto& field) {
    if (field.may_lack && !fields.has(field.name)) return;
    take_value(fields, field.name, structure.*field.value);
  };
  std::apply([&](const auto&... field) { (take(field), ...); }, Structure::fields());
}

/// A structure with a list of its fields; see control/field.h.
template <typename Structure>
concept ListsFields = requires {
  Structure::fields();
};

}  // namespace varve::control

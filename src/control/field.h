// SPDX-License-Identifier: Apache-2.0
// The list of the fields of a structure, for the JSON of the control socket.
#pragma once

#include <tuple>

namespace varve::control {

/// Says whether the JSON of a structure has a field. An absent field keeps the default value.
enum class Presence {
  kAlways,         ///< A reader refuses JSON without the field.
  kMayLack,        ///< Always written; an older peer leaves the field out.
  kUnlessDefault,  ///< Written only if a number or text is not the default.
};

/// A field of a structure, with the name in JSON. A std::optional is written if set.
template <typename Structure, typename Value>
struct Field {
  const char* name;
  Value Structure::*value;
  Presence presence = Presence::kAlways;
};
template <typename Structure, typename Value>
Field(const char*, Value Structure::*) -> Field<Structure, Value>;
template <typename Structure, typename Value>
Field(const char*, Value Structure::*, Presence) -> Field<Structure, Value>;

/// A member whose fields are fields of the outer object in JSON.
template <typename Structure, typename Value>
struct Inlined {
  Value Structure::*value;
};
template <typename Structure, typename Value>
Inlined(Value Structure::*) -> Inlined<Structure, Value>;

/// The list of a structure: FieldsOf<Structure>::list() returns a tuple of Field and Inlined. The
/// default takes the list from a static function `fields()` of the structure.
template <typename Structure>
struct FieldsOf;
template <typename Structure>
requires requires { Structure::fields(); }
struct FieldsOf<Structure> {
  static constexpr auto list() { return Structure::fields(); }
};

/// A structure with a list of fields.
template <typename Structure>
concept ListsFields = requires {
  FieldsOf<Structure>::list();
};

}  // namespace varve::control

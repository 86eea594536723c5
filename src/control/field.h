// SPDX-License-Identifier: Apache-2.0
// The list of the fields of a structure, for the JSON of the control socket.
#pragma once

namespace varve::control {

/// A field of a structure. A static function `fields()` of the structure returns a tuple of all
/// fields.
template <typename Structure, typename Value>
struct Field {
  const char* name;  ///< Name of the member in JSON.
  Value Structure::*value;
  bool may_lack = false;  ///< True if an older client leaves the member out.
};
template <typename Structure, typename Value>
Field(const char*, Value Structure::*) -> Field<Structure, Value>;
template <typename Structure, typename Value>
Field(const char*, Value Structure::*, bool) -> Field<Structure, Value>;

}  // namespace varve::control

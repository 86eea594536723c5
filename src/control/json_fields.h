// SPDX-License-Identifier: Apache-2.0
// Reads and writes members of the JSON objects of the control socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace varve::control

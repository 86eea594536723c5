// SPDX-License-Identifier: Apache-2.0
// Reading and writing members of the JSON objects that go over the control socket.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace varve::control {

/// Names are bytes, JSON strings are Unicode. Plain ASCII goes as a string, all else as an
/// array of byte values, so that every name arrives as it was given.
[[nodiscard]] nlohmann::json text_to_json(std::string_view text);

/// Reads members of one object. After a member that is missing or of a wrong type, ok() is
/// false.
class Fields {
 public:
  /// `object` must live longer.
  explicit Fields(const nlohmann::json& object) : object_(object), ok_(object.is_object()) {}

  std::string text(const char* name);
  std::int64_t integer(const char* name);
  std::uint64_t count(const char* name);
  std::uint32_t u32(const char* name);
  bool flag(const char* name);
  [[nodiscard]] bool has(const char* name) const { return ok_ && object_.contains(name); }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  const nlohmann::json* member(const char* name);
  template <typename T>
  T failed() {
    ok_ = false;
    return T{};
  }
  const nlohmann::json& object_;
  bool ok_;
};

}  // namespace varve::control

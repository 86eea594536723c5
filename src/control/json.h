// SPDX-License-Identifier: Apache-2.0
// JSON values: built for output, or read from a text.
//
// json.cc is the only file to include the JSON library: the library's header takes longer to
// compile than most of our files.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::control {

/// A JSON value. A copy is deep. The members of an object are in the order of their names.
class Json {
 public:
  struct Member;

  Json() noexcept;  ///< Null.
  Json(bool value);
  template <std::signed_integral Number>
  Json(Number value) : Json(Signed{value}) {}
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) Json(Number value) : Json(Unsigned{value}) {}
  Json(double value);
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  Json(const std::vector<std::string>& texts);
  Json(std::initializer_list<Member> members);  ///< An object.

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  [[nodiscard]] static Json array();
  [[nodiscard]] static Json object();

  /// Returns the member of an object. Adds a missing member. Turns null into an object first.
  Json& operator[](std::string_view name);
  /// Adds an element to an array.
  void push_back(Json element);

  [[nodiscard]] bool is_object() const;
  /// Returns the member, or nullptr if the member is missing or this value is not an object.
  [[nodiscard]] const Json* find(std::string_view name) const;
  /// Returns the elements, or nullptr if this value is not an array.
  [[nodiscard]] const std::vector<Json>* elements() const;
  /// Returns the text, or nullptr if this value is not a string.
  [[nodiscard]] const std::string* text() const;
  /// The next three functions return nullopt for a value of another type, or outside the range of
  /// the result.
  [[nodiscard]] std::optional<bool> flag() const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  [[nodiscard]] std::optional<std::uint64_t> count() const;

  /// Returns the value as a single line. Replaces bytes that are not UTF-8 by U+FFFD.
  [[nodiscard]] std::string dump() const;
  /// Returns the value that `text` describes; null if `text` is not JSON, or nested too deeply.
  [[nodiscard]] static Json parse(std::string_view text);

 private:
  struct Signed {
    std::int64_t value;
  };
  struct Unsigned {
    std::uint64_t value;
  };
  struct Value;
  Json(Signed number);
  Json(Unsigned number);
  explicit Json(std::unique_ptr<Value> value) noexcept;

  std::unique_ptr<Value> value_;  ///< Null: the JSON value null.
};

/// A named value of an object.
struct Json::Member {
  std::string_view name;
  Json value;
};

}  // namespace varve::control

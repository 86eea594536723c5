// SPDX-License-Identifier: Apache-2.0
#include "control/json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace varve::control {
namespace {

/// Bounds the stack used for a hostile text. The protocol nests four levels.
constexpr std::size_t kDepthMax = 64;

using Array = std::vector<Json>;
using Object = std::map<std::string, Json, std::less<>>;

/// Builds a Json from the events of the library's parser. Each function returns false to stop the
/// parser.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Json& root) : root_(root) {}

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& /*text*/) override { return put(value); }
  bool string(std::string& text) override { return put(std::move(text)); }
  bool binary(nlohmann::json::binary_t& /*bytes*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    name_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  bool put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.is_object()) {
      open_.back().value[name_] = std::move(value);
    } else {
      open_.back().value.push_back(std::move(value));
    }
    return true;
  }

  bool open(Json container) {
    if (open_.size() == kDepthMax) return false;
    open_.push_back({std::move(name_), std::move(container)});
    return true;
  }

  bool close() {
    OpenContainer done = std::move(open_.back());
    open_.pop_back();
    name_ = std::move(done.name);
    return put(std::move(done.value));
  }

  struct OpenContainer {
    std::string name;  ///< Name of the container in the enclosing object.
    Json value;
  };
  Json& root_;
  std::vector<OpenContainer> open_;
  std::string name_;  ///< Name of the next member.
};

}  // namespace

struct Json::Value {
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> content;

  template <typename Content>
  static std::unique_ptr<Value> make(Content content) {
    auto value = std::make_unique<Value>();
    value->content = std::move(content);
    return value;
  }

  template <typename Content>
  static const Content* of(const Json& json) {
    return json.value_ == nullptr ? nullptr : std::get_if<Content>(&json.value_->content);
  }

  static nlohmann::json library_value(const Json& json) {
    if (json.value_ == nullptr) return nullptr;
    if (const Array* array = of<Array>(json)) {
      auto result = nlohmann::json::array();
      for (const Json& element : *array) result.push_back(library_value(element));
      return result;
    }
    if (const Object* object = of<Object>(json)) {
      auto result = nlohmann::json::object();
      for (const auto& [name, value] : *object) result[name] = library_value(value);
      return result;
    }
    return std::visit(
        [](const auto& content) -> nlohmann::json {
          using Content = std::remove_cvref_t<decltype(content)>;
          if constexpr (std::is_same_v<Content, Array> || std::is_same_v<Content, Object>) {
            return nullptr;  // Handled above.
          } else {
            return content;
          }
        },
        json.value_->content);
  }
};

Json::Json() noexcept = default;
Json::Json(std::unique_ptr<Value> value) noexcept : value_(std::move(value)) {}
Json::Json(bool value) : value_(Value::make(value)) {}
Json::Json(Signed number) : value_(Value::make(number.value)) {}
Json::Json(Unsigned number) : value_(Value::make(number.value)) {}
Json::Json(double value) : value_(Value::make(value)) {}
Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string text) : value_(Value::make(std::move(text))) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}

Json::Json(const std::vector<std::string>& texts) : value_(Value::make(Array())) {
  for (const std::string& text : texts) push_back(text);
}

Json::Json(std::initializer_list<Member> members) : value_(Value::make(Object())) {
  for (const Member& member : members) (*this)[member.name] = member.value;
}

Json::Json(const Json& other)
    : value_(other.value_ == nullptr ? nullptr : std::make_unique<Value>(*other.value_)) {}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) {
  if (this != &other) *this = Json(other);
  return *this;
}
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array() { return Json(Value::make(Array())); }
Json Json::object() { return Json(Value::make(Object())); }

Json& Json::operator[](std::string_view name) {
  if (value_ == nullptr) value_ = Value::make(Object());
  auto* object = std::get_if<Object>(&value_->content);
  VARVE_ASSERT(object != nullptr);
  return object->try_emplace(std::string(name)).first->second;
}

void Json::push_back(Json element) {
  auto* array = value_ == nullptr ? nullptr : std::get_if<Array>(&value_->content);
  VARVE_ASSERT(array != nullptr);
  array->push_back(std::move(element));
}

bool Json::is_object() const { return Value::of<Object>(*this) != nullptr; }

const Json* Json::find(std::string_view name) const {
  const auto* object = Value::of<Object>(*this);
  if (object == nullptr) return nullptr;
  const auto place = object->find(name);
  return place == object->end() ? nullptr : &place->second;
}

const std::vector<Json>* Json::elements() const { return Value::of<Array>(*this); }

const std::string* Json::text() const { return Value::of<std::string>(*this); }

std::optional<bool> Json::flag() const {
  const auto* value = Value::of<bool>(*this);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::int64_t> Json::integer() const {
  if (const auto* value = Value::of<std::int64_t>(*this)) return *value;
  const auto* value = Value::of<std::uint64_t>(*this);
  if (value == nullptr || !std::in_range<std::int64_t>(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::uint64_t> Json::count() const {
  if (const auto* value = Value::of<std::uint64_t>(*this)) return *value;
  const auto* value = Value::of<std::int64_t>(*this);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::string Json::dump() const {
  return Value::library_value(*this).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Json Json::parse(std::string_view text) {
  Json root;
  Builder builder(root);
  if (!nlohmann::json::sax_parse(text, &builder)) return {};
  return root;
}

}  // namespace varve::control

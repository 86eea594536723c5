// SPDX-License-Identifier: Apache-2.0
#include "control/protocol.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/damage_json.h"
#include "control/error_names.h"
#include "control/field_lists.h"
#include "control/identity_json.h"
#include "control/json.h"
#include "control/json_fields.h"
#include "control/metrics_json.h"
#include "control/repository_control.h"
#include "control/store_json.h"
#include "control/upkeep_json.h"

namespace varve::control {
namespace {

// The operations with several messages, or with a request of a special kind.
constexpr std::array<std::pair<Operation, std::string_view>, 6> kLongOperations = {{
    {Operation::kHello, "hello"},
    {Operation::kSeal, "seal"},
    {Operation::kArrange, "arrange"},
    {Operation::kStore, "store"},
    {Operation::kStoreStream, "store_stream"},
    {Operation::kGoOn, "go_on"},
}};

template <typename Table, typename Value>
std::string_view name_in(const Table& table, Value value) {
  const auto place = std::ranges::find(table, value, &Table::value_type::first);
  return place == table.end() ? std::string_view("?") : place->second;
}

/// Whether the request of a row has a list of fields: the JSON then needs no further code.
template <typename Row>
constexpr bool has_listed_request() {
  using In = decltype(std::remove_cvref_t<Row>::in);
  if constexpr (kIsMember<In>) {
    return ListsFields<std::remove_cvref_t<decltype(std::declval<Request>().*std::declval<In>())>>;
  } else {
    return false;
  }
}

std::string_view name_of(Operation operation) {
  std::string_view name = name_in(kLongOperations, operation);
  for_each_operation([&](const auto& row) {
    if (row.operation == operation) name = row.name;
  });
  return name;
}

std::optional<Operation> operation_called(std::string_view name) {
  std::optional<Operation> found;
  for (const auto& [operation, its_name] : kLongOperations) {
    if (its_name == name) found = operation;
  }
  for_each_operation([&](const auto& row) {
    if (row.name == name) found = row.operation;
  });
  return found;
}

Error not_understood(std::string_view what) {
  return {ErrorCode::kInvalid, "the control socket's " + std::string(what) + " was not understood"};
}

/// Calls `visit` with the part of the request that has a list of fields; for most operations, the
/// JSON needs no further code.
template <typename AnyRequest, typename Visit>
void with_listed_part(AnyRequest& request, const Visit& visit) {
  if (request.operation == Operation::kSeal) visit(request.seal);
  if (request.operation == Operation::kArrange) visit(request.arrange);
  for_each_operation([&](const auto& row) {
    if constexpr (has_listed_request<decltype(row)>()) {
      if (row.operation == request.operation) visit(request.*row.in);
    }
  });
}

/// Adds the members of the other operations.
void put_unlisted(const Request& request, Json& line) {
  if (request.operation == Operation::kLock) {
    line["series"] = text_to_json(request.lock.series);
    line["versions"] = JsonOf<std::vector<VersionNumber>>::write({request.lock.version});
    line["until"] = JsonOf<Timestamp>::write(request.lock.until);
  }
  if (request.operation == Operation::kOpenVersions) line["series"] = text_to_json(request.series);
  if (request.operation == Operation::kArrangeSettings && request.settings) {
    line["settings"] = JsonOf<ArrangeSettings>::write(*request.settings);
  }
  if (is_store(request)) line["store"] = store_to_json(request.store);
}

/// Reads the members of put_unlisted(). Returns false if a member is missing or has the wrong type.
bool take_unlisted(const Json& object, Fields& fields, Request& request) {
  if (request.operation == Operation::kLock) {
    std::vector<VersionNumber> numbers;
    fields.take("series", request.lock.series);
    fields.take("versions", numbers);
    fields.take("until", request.lock.until);
    if (numbers.size() != 1) return false;
    request.lock.version = numbers.front();
  }
  if (request.operation == Operation::kOpenVersions) fields.take("series", request.series);
  if (request.operation == Operation::kArrangeSettings && fields.has("settings")) {
    fields.take("settings", request.settings.emplace());
  }
  if (is_store(request)) {
    const Json* const found = object.find("store");
    auto task = found == nullptr
                    ? std::nullopt
                    : store_from_json(*found, request.operation == Operation::kStoreStream);
    if (!task) return false;
    request.store = *std::move(task);
  }
  return fields.ok();
}

}  // namespace

std::string encode(const Request& request) {
  Json line = {{"op", name_of(request.operation)}, {"protocol", request.protocol}};
  with_listed_part(request, [&](const auto& part) { put_fields(part, line); });
  put_unlisted(request, line);
  return line.dump();
}

std::string encode(const Reply& reply) {
  Json line = {{"ok", !reply.error.has_value()}};
  if (reply.error) {
    line["code"] = name_in(kCodes, reply.error->code());
    line["message"] = text_to_json(reply.error->message());
    line["exit"] = exit_code_of(reply.error->code());
  }
  put_fields(reply, line);
  return line.dump();
}

Result<Request> decode_request(std::string_view line) {
  const Json object = Json::parse(line);
  Fields fields(object);
  const std::string name = fields.text("op");
  Request request;
  request.protocol = 1;
  if (fields.has("protocol")) request.protocol = fields.u32("protocol");
  if (!fields.ok()) return not_understood("request");
  const auto operation = operation_called(name);
  const bool is_hello = operation == Operation::kHello;
  if (request.protocol != kProtocol && !is_hello) return protocol_refused(request.protocol);
  if (!operation) return not_understood("request");
  request.operation = *operation;
  with_listed_part(request, [&](auto& part) { take_fields(fields, part); });
  if (request.seal.wait_seconds > kSealWaitSecondsMax) return not_understood("request");
  if (!fields.ok() || !take_unlisted(object, fields, request)) return not_understood("request");
  return request;
}

Result<Reply> decode_reply(std::string_view line) {
  const Json object = Json::parse(line);
  Fields fields(object);
  Reply reply;
  if (!fields.flag("ok")) {
    const std::string name = fields.text("code");
    const std::string message = fields.text("message");
    const auto code = std::ranges::find(kCodes, name, &decltype(kCodes)::value_type::second);
    if (!fields.ok()) return not_understood("reply");
    // A newer daemon may send unknown codes, but the message still explains the error.
    reply.error = Error(code == kCodes.end() ? ErrorCode::kIo : code->first, message);
    return reply;
  }
  take_fields(fields, reply);
  if (!fields.ok()) return not_understood("reply");
  return reply;
}

}  // namespace varve::control

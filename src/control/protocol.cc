// SPDX-License-Identifier: Apache-2.0
#include "control/protocol.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "control/damage_json.h"
#include "control/error_names.h"
#include "control/identity_json.h"
#include "control/json.h"
#include "control/json_fields.h"
#include "control/metrics_json.h"
#include "control/operations.h"
#include "control/pool_streams_json.h"
#include "control/series_settings_json.h"
#include "control/store_json.h"
#include "control/upkeep_json.h"
#include "control/version_json.h"
#include "control/version_lists_json.h"

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

/// The members of structures with the JSON names, for encoding and decoding.
constexpr std::array<std::pair<const char*, std::uint64_t DeletionForecast::*>, 5> kForecast = {{
    {"freed_bytes", &DeletionForecast::freed_bytes},
    {"dead_bytes", &DeletionForecast::dead_bytes},
    {"chunks", &DeletionForecast::chunks},
    {"chunk_bytes", &DeletionForecast::chunk_bytes},
    {"waiting_bytes", &DeletionForecast::waiting_bytes},
}};

constexpr std::array<std::pair<const char*, std::uint64_t ArrangeProgress::*>, 3> kProgress = {{
    {"bytes_written", &ArrangeProgress::bytes_written},
    {"bytes_read", &ArrangeProgress::bytes_read},
    {"steps", &ArrangeProgress::steps},
}};

constexpr std::array<std::pair<const char*, std::uint32_t ArrangeSettings::*>, 5> kSettings = {{
    {"batch", &ArrangeSettings::batch},
    {"dead_permille", &ArrangeSettings::dead_permille},
    {"fan", &ArrangeSettings::fan},
    {"window", &ArrangeSettings::window},
    {"parity_percent", &ArrangeSettings::parity_percent},
}};

/// Converts a structure of numbers to JSON, by the table of the structure's members.
template <typename Table, typename Structure>
Json numbers_to_json(const Table& table, const Structure& values) {
  Json object = Json::object();
  for (const auto& [name, member] : table) object[name] = values.*member;
  return object;
}

template <typename Structure, typename Table>
std::optional<Structure> numbers_from(const Table& table, const Json& object) {
  Fields fields(object);
  Structure values;
  for (const auto& [name, member] : table) {
    if constexpr (std::is_same_v<decltype(member), std::uint32_t Structure::*const>) {
      values.*member = fields.u32(name);
    } else {
      values.*member = fields.count(name);
    }
  }
  if (!fields.ok()) return std::nullopt;
  return values;
}

Json to_json(const ArrangeSettings& settings) {
  Json object = numbers_to_json(kSettings, settings);
  if (settings.delta != 0) object["delta"] = settings.delta;  // An earlier Varve has no such field.
  object["policy"] = name_of(settings.policy);
  return object;
}

std::optional<ArrangeSettings> settings_from(const Json& object) {
  auto settings = numbers_from<ArrangeSettings>(kSettings, object);
  Fields fields(object);
  const auto policy = arrange_policy(fields.text("policy"));
  if (!settings || !fields.ok() || !policy) return std::nullopt;
  settings->policy = *policy;
  if (object.find("delta") != nullptr) settings->delta = fields.u32("delta");
  if (!fields.ok()) return std::nullopt;
  return settings;
}

Error not_understood(std::string_view what) {
  return {ErrorCode::kInvalid, "the control socket's " + std::string(what) + " was not understood"};
}

void encode_upkeep(const Request& request, Json& line) {
  if (request.operation == Operation::kDelete) {
    line["series"] = text_to_json(request.removal.series);
    line["versions"] = version_numbers_to_json(request.removal.versions);
    line["forecast"] = request.removal.forecast_only;
    line["discard"] = request.removal.discard;
    line["skip_held"] = request.removal.options.skip_held;
    line["force"] = request.removal.options.force;
    line["force_clock"] = request.removal.options.force_clock;
    line["deleted_before"] = version_keys_to_json(request.removal.options.deleted_before);
  }
  if (request.operation == Operation::kLock) {
    line["series"] = text_to_json(request.lock.series);
    line["versions"] = version_numbers_to_json({request.lock.version});
    line["until"] = time_to_json(request.lock.until);
  }
  if (request.operation == Operation::kClaim) {
    line["version"] = text_to_json(request.claim.version);
    line["time"] = time_to_json(request.claim.time);
  }
  if (is_store(request)) line["store"] = store_to_json(request.store);
  if (request.operation == Operation::kArrange) put_fields(request.arrange, line);
  if (request.operation == Operation::kOpenVersions) line["series"] = text_to_json(request.series);
  if (request.operation == Operation::kArrangeSettings && request.settings) {
    line["settings"] = to_json(*request.settings);
  }
  if (request.operation == Operation::kSeriesSettings) {
    line["series"] = text_to_json(request.series_settings.series);
    line["changes"] = changes_to_json(request.series_settings.changes);
  }
  put_repository_settings(request, line);
}

/// Returns false if a member is missing or has the wrong type.
bool decode_upkeep(const Json& object, Request& request) {
  Fields fields(object);
  bool ok = true;
  if (request.operation == Operation::kDelete) {
    request.removal.series = fields.text("series");
    request.removal.forecast_only = fields.flag("forecast");
    if (fields.has("discard")) request.removal.discard = fields.flag("discard");
    auto& options = request.removal.options;
    if (fields.has("skip_held")) options.skip_held = fields.flag("skip_held");
    if (fields.has("force")) options.force = fields.flag("force");
    if (fields.has("force_clock")) options.force_clock = fields.flag("force_clock");
    if (fields.has("deleted_before")) {
      auto before = version_keys_from(*object.find("deleted_before"));
      if (!before) return false;
      options.deleted_before = *std::move(before);
    }
    auto numbers = version_numbers_from(object);
    ok = numbers.has_value();
    if (ok) request.removal.versions = *std::move(numbers);
  }
  if (request.operation == Operation::kLock) {
    request.lock.series = fields.text("series");
    const auto numbers = version_numbers_from(object);
    const auto until = time_from_json(object, "until");
    ok = until && numbers && numbers->size() == 1;
    if (ok) {
      request.lock.version = numbers->front();
      request.lock.until = *until;
    }
  }
  if (request.operation == Operation::kClaim) {
    request.claim.version = fields.text("version");
    const auto time = time_from_json(object, "time");
    ok = time.has_value();
    if (ok) request.claim.time = *time;
  }
  if (is_store(request)) return take_store(object, request);
  if (request.operation == Operation::kArrange) take_fields(fields, request.arrange);
  if (request.operation == Operation::kOpenVersions) request.series = fields.text("series");
  if (request.operation == Operation::kArrangeSettings && fields.has("settings")) {
    request.settings = settings_from(*object.find("settings"));
    ok = request.settings.has_value();
  }
  if (request.operation == Operation::kSeriesSettings) {
    request.series_settings.series = fields.text("series");
    const auto changes =
        fields.has("changes") ? changes_from_json(*object.find("changes")) : std::nullopt;
    ok = changes.has_value();
    if (ok) request.series_settings.changes = *changes;
  }
  ok = ok && take_repository_settings(object, request);
  return ok && fields.ok();
}

void encode_upkeep(const Reply& reply, Json& line) {
  if (reply.forecast) {
    line["forecast"] = numbers_to_json(kForecast, *reply.forecast);
    line["forecast"]["versions"] = version_numbers_to_json(reply.forecast->versions);
    line["forecast"]["waiting_for"] = text_to_json(reply.forecast->waiting_for);
    line["forecast"]["held"] = held_to_json(reply.forecast->held);
  }
  if (reply.progress) line["progress"] = numbers_to_json(kProgress, *reply.progress);
  if (reply.arranged) {
    line["arranged"] = numbers_to_json(kProgress, reply.arranged->done);
    line["arranged"]["finished"] = reply.arranged->finished;
    const auto damaged = reply.arranged->done.damaged;  // An earlier Varve has no such field.
    if (damaged != 0) line["arranged"]["damaged"] = damaged;
  }
  if (reply.settings) line["settings"] = to_json(*reply.settings);
  if (reply.series_settings) {
    line["series_settings"] =
        changes_to_json({reply.series_settings->placement, reply.series_settings->rewrite});
  }
  put_stored(reply, line);
  if (reply.pool_index) line["pool_index"] = pool_index_text(*reply.pool_index);
  if (reply.upkeep) line["upkeep"] = upkeep_to_json(*reply.upkeep);
  if (reply.streams) line["streams"] = streams_to_json(*reply.streams);
  put_damage(reply, line);
}

bool decode_upkeep(const Json& object, Reply& reply) {
  if (!take_stored(object, reply) || !take_damage(object, reply)) return false;
  if (object.find("forecast") != nullptr) {
    const Json& forecast = *object.find("forecast");
    reply.forecast = numbers_from<DeletionForecast>(kForecast, forecast);
    auto numbers = reply.forecast ? version_numbers_from(forecast) : std::nullopt;
    if (!numbers) return false;
    reply.forecast->versions = *std::move(numbers);
    Fields fields(forecast);
    reply.forecast->waiting_for = fields.text("waiting_for");
    auto held = held_from(forecast);
    if (!fields.ok() || !held) return false;
    reply.forecast->held = *std::move(held);
  }
  if (object.find("progress") != nullptr) {
    reply.progress = numbers_from<ArrangeProgress>(kProgress, *object.find("progress"));
    if (!reply.progress) return false;
  }
  if (object.find("arranged") != nullptr) {
    Fields fields(*object.find("arranged"));
    auto done = numbers_from<ArrangeProgress>(kProgress, *object.find("arranged"));
    reply.arranged.emplace().finished = fields.flag("finished");
    if (done && fields.has("damaged")) done->damaged = fields.count("damaged");
    if (!done || !fields.ok()) return false;
    reply.arranged->done = *done;
  }
  if (object.find("settings") != nullptr) {
    reply.settings = settings_from(*object.find("settings"));
    if (!reply.settings) return false;
  }
  if (object.find("series_settings") != nullptr) {
    const auto values = changes_from_json(*object.find("series_settings"));
    if (!values || !values->placement || !values->rewrite) return false;
    reply.series_settings = {*values->placement, *values->rewrite};
  }
  if (object.find("upkeep") != nullptr) {
    reply.upkeep = upkeep_from_json(*object.find("upkeep"));
    if (!reply.upkeep) return false;
  }
  if (object.find("pool_index") != nullptr) {
    Fields fields(object);
    const auto choice = parse_pool_index(fields.text("pool_index"));
    if (!fields.ok() || !choice) return false;
    reply.pool_index = *choice;
  }
  if (object.find("streams") != nullptr) {
    reply.streams = streams_from_json(*object.find("streams"));
    if (!reply.streams) return false;
  }
  return true;
}

}  // namespace

std::string encode(const Request& request) {
  Json line = {{"op", name_of(request.operation)}, {"protocol", request.protocol}};
  if (request.operation == Operation::kSeal) put_fields(request.seal, line);
  for_each_operation([&](const auto& row) {
    if constexpr (has_listed_request<decltype(row)>()) {
      if (row.operation == request.operation) put_fields(request.*row.in, line);
    }
  });
  encode_upkeep(request, line);
  return line.dump();
}

std::string encode(const Reply& reply) {
  Json line = {{"ok", !reply.error.has_value()}};
  if (reply.error) {
    line["code"] = name_in(kCodes, reply.error->code());
    line["message"] = text_to_json(reply.error->message());
    line["exit"] = exit_code_of(reply.error->code());
  }
  if (reply.working) line["working"] = true;
  if (reply.identity) line["identity"] = identity_to_json(*reply.identity);
  if (reply.version) line["version"] = version_to_json(*reply.version);
  if (reply.next) line["next"] = version_to_json(*reply.next);
  if (!reply.warning.empty()) line["warning"] = text_to_json(reply.warning);
  if (reply.versions) {
    line["versions"] = Json::array();
    for (const VersionInfo& version : *reply.versions) {
      line["versions"].push_back(version_to_json(version));
    }
  }
  if (reply.metrics) line["metrics"] = metrics_to_json(*reply.metrics);
  encode_upkeep(reply, line);
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
  if (request.operation == Operation::kSeal) {
    take_fields(fields, request.seal);
    if (request.seal.wait_seconds > kSealWaitSecondsMax) return not_understood("request");
  }
  for_each_operation([&](const auto& row) {
    if constexpr (has_listed_request<decltype(row)>()) {
      if (row.operation == request.operation) take_fields(fields, request.*row.in);
    }
  });
  if (!fields.ok() || !decode_upkeep(object, request)) return not_understood("request");
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
  if (fields.has("working")) reply.working = fields.flag("working");
  if (fields.has("identity")) {
    reply.identity = identity_from_json(*object.find("identity"));
    if (!reply.identity) return not_understood("reply");
  }
  if (fields.has("version")) {
    reply.version = version_from_json(*object.find("version"));
    if (!reply.version) return not_understood("reply");
  }
  if (fields.has("next")) {
    reply.next = version_from_json(*object.find("next"));
    if (!reply.next) return not_understood("reply");
  }
  if (fields.has("versions")) {
    reply.versions = versions_from(*object.find("versions"));
    if (!reply.versions) return not_understood("reply");
  }
  if (fields.has("warning")) reply.warning = fields.text("warning");
  if (fields.has("metrics")) {
    reply.metrics = metrics_from_json(*object.find("metrics"));
    if (!reply.metrics) return not_understood("reply");
  }
  if (!fields.ok() || !decode_upkeep(object, reply)) return not_understood("reply");
  return reply;
}

}  // namespace varve::control

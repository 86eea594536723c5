// SPDX-License-Identifier: Apache-2.0
#include "control/protocol.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace varve::control {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<Operation, std::string_view>, 5> kOperations = {{
    {Operation::kPing, "ping"},
    {Operation::kSeal, "seal"},
    {Operation::kStats, "stats"},
    {Operation::kOpen, "open"},
    {Operation::kClone, "clone"},
}};

constexpr std::array<std::pair<ErrorCode, std::string_view>, 21> kCodes = {{
    {ErrorCode::kIo, "io"},
    {ErrorCode::kCorrupt, "corrupt"},
    {ErrorCode::kNotFound, "not_found"},
    {ErrorCode::kExists, "exists"},
    {ErrorCode::kInvalid, "invalid"},
    {ErrorCode::kBusy, "busy"},
    {ErrorCode::kReadOnly, "read_only"},
    {ErrorCode::kNoSpace, "no_space"},
    {ErrorCode::kNotPermitted, "not_permitted"},
    {ErrorCode::kNotEmpty, "not_empty"},
    {ErrorCode::kNotDirectory, "not_directory"},
    {ErrorCode::kIsDirectory, "is_directory"},
    {ErrorCode::kNameTooLong, "name_too_long"},
    {ErrorCode::kOtherVersion, "other_version"},
    {ErrorCode::kLocked, "locked"},
    {ErrorCode::kNoRepository, "no_repository"},
    {ErrorCode::kUnsupported, "unsupported"},
    {ErrorCode::kTooLarge, "too_large"},
    {ErrorCode::kStale, "stale"},
    {ErrorCode::kNoAttribute, "no_attribute"},
    {ErrorCode::kInterrupted, "interrupted"},
}};

template <typename Table, typename Value>
std::string_view name_in(const Table& table, Value value) {
  const auto place = std::ranges::find(table, value, &Table::value_type::first);
  return place == table.end() ? std::string_view("?") : place->second;
}

/// Names are bytes, JSON strings are Unicode. Plain ASCII goes as a string, all else as an
/// array of byte values, so that every name arrives as it was given.
Json text_to_json(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c > 0 && c < 0x7f; });
  if (plain) return Json(std::string(text));
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

/// Reads members of one object. After a member that is missing or of a wrong type, ok() is
/// false.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object), ok_(object.is_object()) {}

  std::string text(const char* name) {
    const Json* value = member(name);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    std::string result;
    if (!value->is_array()) return failed<std::string>();
    for (const Json& byte : *value) {
      if (!byte.is_number_unsigned() || byte.get<std::uint64_t>() > 255) {
        return failed<std::string>();
      }
      result += static_cast<char>(byte.get<std::uint64_t>());
    }
    return result;
  }
  std::int64_t integer(const char* name) {
    const Json* value = member(name);
    if (value == nullptr) return 0;
    return value->is_number_integer() ? value->get<std::int64_t>() : failed<std::int64_t>();
  }
  std::uint64_t count(const char* name) {
    const Json* value = member(name);
    if (value == nullptr) return 0;
    return value->is_number_unsigned() ? value->get<std::uint64_t>() : failed<std::uint64_t>();
  }
  std::uint32_t u32(const char* name) {
    const std::uint64_t value = count(name);
    return value <= 0xffffffffU ? static_cast<std::uint32_t>(value) : failed<std::uint32_t>();
  }
  bool flag(const char* name) {
    const Json* value = member(name);
    if (value == nullptr) return false;
    return value->is_boolean() ? value->get<bool>() : failed<bool>();
  }
  [[nodiscard]] bool has(const char* name) const { return ok_ && object_.contains(name); }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  const Json* member(const char* name) {
    if (!ok_) return nullptr;
    const auto place = object_.find(name);
    if (place == object_.end()) {
      ok_ = false;
      return nullptr;
    }
    return &*place;
  }
  template <typename T>
  T failed() {
    ok_ = false;
    return T{};
  }
  const Json& object_;
  bool ok_;
};

Json to_json(const Timestamp& time) {
  return {{"seconds", time.seconds}, {"nanoseconds", time.nanoseconds}};
}

Timestamp time_from(const Json& object, const char* name, bool& ok) {
  if (!object.is_object() || !object.contains(name)) {
    ok = false;
    return {};
  }
  Fields fields(object.at(name));
  Timestamp time;
  time.seconds = fields.integer("seconds");
  time.nanoseconds = static_cast<std::uint32_t>(fields.count("nanoseconds"));
  ok = ok && fields.ok();
  return time;
}

Json to_json(const VersionInfo& info) {
  return {{"series_id", static_cast<std::uint32_t>(info.series)},
          {"number", static_cast<std::uint32_t>(info.number)},
          {"series", text_to_json(info.series_name)},
          {"name", text_to_json(info.name)},
          {"sealed", info.state == VersionState::kSealed},
          {"opened_at", to_json(info.opened_at)},
          {"sealed_at", to_json(info.sealed_at)},
          {"entries", info.entries},
          {"logical_bytes", info.logical_bytes},
          {"unique_bytes", info.unique_bytes},
          {"stored_bytes", info.stored_bytes}};
}

std::optional<VersionInfo> version_from(const Json& object) {
  Fields fields(object);
  VersionInfo info;
  info.series = static_cast<SeriesId>(fields.count("series_id"));
  info.number = static_cast<VersionNumber>(fields.count("number"));
  info.series_name = fields.text("series");
  info.name = fields.text("name");
  info.state = fields.flag("sealed") ? VersionState::kSealed : VersionState::kOpen;
  info.entries = fields.count("entries");
  info.logical_bytes = fields.count("logical_bytes");
  info.unique_bytes = fields.count("unique_bytes");
  info.stored_bytes = fields.count("stored_bytes");
  bool ok = fields.ok();
  info.opened_at = time_from(object, "opened_at", ok);
  info.sealed_at = time_from(object, "sealed_at", ok);
  if (!ok) return std::nullopt;
  return info;
}

/// The members of RepositoryStats by their names in JSON, for both directions.
constexpr std::array<std::pair<const char*, std::uint64_t RepositoryStats::*>, 12> kStats = {{
    {"series", &RepositoryStats::series},
    {"versions_sealed", &RepositoryStats::versions_sealed},
    {"versions_open", &RepositoryStats::versions_open},
    {"logical_bytes", &RepositoryStats::logical_bytes},
    {"unique_bytes", &RepositoryStats::unique_bytes},
    {"frame_bytes", &RepositoryStats::frame_bytes},
    {"container_bytes", &RepositoryStats::container_bytes},
    {"containers", &RepositoryStats::containers},
    {"chunks", &RepositoryStats::chunks},
    {"catalog_bytes", &RepositoryStats::catalog_bytes},
    {"index_bytes", &RepositoryStats::index_bytes},
    {"staging_bytes", &RepositoryStats::staging_bytes},
}};

int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::kNoRepository) return 10;
  return code == ErrorCode::kLocked ? 11 : 1;
}

Error not_understood(std::string_view what) {
  return {ErrorCode::kInvalid, "the control socket's " + std::string(what) + " was not understood"};
}

}  // namespace

std::string encode(const Request& request) {
  Json line = {{"op", name_in(kOperations, request.operation)}};
  if (request.operation == Operation::kSeal) {
    line["version"] = text_to_json(request.seal.version);
    line["new_name"] = text_to_json(request.seal.new_name);
    line["wait"] = request.seal.wait;
    line["keep"] = request.seal.keep;
  }
  if (request.operation == Operation::kOpen || request.operation == Operation::kClone) {
    line["version"] = text_to_json(request.open.version);
    line["source"] = text_to_json(request.open.source);
    line["mode"] = request.open.mode;
    line["uid"] = request.open.uid;
    line["gid"] = request.open.gid;
  }
  return line.dump();
}

std::string encode(const Reply& reply) {
  Json line = {{"ok", !reply.error.has_value()}};
  if (reply.error) {
    line["code"] = name_in(kCodes, reply.error->code());
    line["message"] = text_to_json(reply.error->message());
    line["errno"] = reply.error->errno_value();
    line["exit"] = exit_code_of(reply.error->code());
  }
  if (reply.version) line["version"] = to_json(*reply.version);
  if (reply.next) line["next"] = to_json(*reply.next);
  if (reply.stats) {
    Json stats = Json::object();
    for (const auto& [name, member] : kStats) stats[name] = *reply.stats.*member;
    line["stats"] = std::move(stats);
  }
  return line.dump();
}

Result<Request> decode_request(std::string_view line) {
  const Json object = Json::parse(line, nullptr, false);
  Fields fields(object);
  const std::string name = fields.text("op");
  const auto operation =
      std::ranges::find(kOperations, name, &decltype(kOperations)::value_type::second);
  if (!fields.ok() || operation == kOperations.end()) return not_understood("request");
  Request request;
  request.operation = operation->first;
  if (request.operation == Operation::kSeal) {
    request.seal.version = fields.text("version");
    if (fields.has("new_name")) request.seal.new_name = fields.text("new_name");
    if (fields.has("wait")) request.seal.wait = fields.flag("wait");
    if (fields.has("keep")) request.seal.keep = fields.flag("keep");
  }
  if (request.operation == Operation::kOpen || request.operation == Operation::kClone) {
    request.open.version = fields.text("version");
    request.open.source = fields.text("source");
    request.open.mode = fields.u32("mode");
    request.open.uid = fields.u32("uid");
    request.open.gid = fields.u32("gid");
  }
  if (!fields.ok()) return not_understood("request");
  return request;
}

Result<Reply> decode_reply(std::string_view line) {
  const Json object = Json::parse(line, nullptr, false);
  Fields fields(object);
  Reply reply;
  if (!fields.flag("ok")) {
    const std::string name = fields.text("code");
    const std::string message = fields.text("message");
    const auto code = std::ranges::find(kCodes, name, &decltype(kCodes)::value_type::second);
    if (!fields.ok() || code == kCodes.end()) return not_understood("reply");
    const int errno_value = fields.has("errno") ? static_cast<int>(fields.integer("errno")) : 0;
    reply.error = Error(code->first, message, errno_value);
    return reply;
  }
  if (fields.has("version")) {
    reply.version = version_from(object.at("version"));
    if (!reply.version) return not_understood("reply");
  }
  if (fields.has("next")) {
    reply.next = version_from(object.at("next"));
    if (!reply.next) return not_understood("reply");
  }
  if (fields.has("stats")) {
    Fields stats(object.at("stats"));
    reply.stats.emplace();
    for (const auto& [member_name, member] : kStats) {
      *reply.stats.*member = stats.count(member_name);
    }
    if (!stats.ok()) return not_understood("reply");
  }
  if (!fields.ok()) return not_understood("reply");
  return reply;
}

}  // namespace varve::control

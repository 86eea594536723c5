// SPDX-License-Identifier: Apache-2.0
#include "control/store_access.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "control/command_output.h"
#include "control/json.h"

namespace varve::control {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;
// Shorter than a request's wait for the store, so that the error message names the command.
constexpr std::chrono::seconds kCommandLimit{45};

/// The settings of one section.
using Settings = std::map<std::string, std::string>;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string first_of(std::initializer_list<std::string> values) {
  for (const auto& value : values) {
    if (!value.empty()) return value;
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Returns the path of a file of AWS: from the environment, or in the home directory.
std::string aws_file(const char* variable, const char* name) {
  auto path = environment(variable);
  const auto home = environment("HOME");
  if (path.empty() && !home.empty()) path = home + "/.aws/" + name;
  return path;
}

/// Returns the file's bytes; nullopt if the file does not exist.
Result<std::optional<std::string>> read_aws_file(const std::string& path) {
  if (path.empty()) return std::optional<std::string>();
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  if (!fd.valid()) return base::system_error(path, errno);
  std::string text(kFileBytesMax, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error(path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  if (have == text.size()) return Error(ErrorCode::kInvalid, path + " is too large");
  text.resize(have);
  return std::optional(std::move(text));
}

/// Returns the settings below "[section]"; nullopt without such a line. Indented lines belong to
/// nested settings, unused by Varve.
std::optional<Settings> section_of(std::string_view text, std::string_view section) {
  std::optional<Settings> found;
  bool is_inside = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto words = trimmed(line);
    if (words.empty() || words[0] == '#' || words[0] == ';') continue;
    if (words[0] == '[') {
      const auto close = std::min(words.find(']'), words.size());
      is_inside = trimmed(words.substr(1, close - 1)) == section;
      if (is_inside && !found) found.emplace();
      continue;
    }
    const auto equals = words.find('=');
    const bool is_nested = line[0] == ' ' || line[0] == '\t';
    if (!is_inside || is_nested || equals == std::string_view::npos) continue;
    found->insert_or_assign(std::string(trimmed(words.substr(0, equals))),
                            std::string(trimmed(words.substr(equals + 1))));
  }
  return found;
}

/// Returns the settings of a profile. The credentials file takes precedence over the config file.
Result<Settings> profile_settings(const std::string& named) {
  const auto profile = first_of({named, environment("AWS_PROFILE"), "default"});
  VARVE_TRY_ASSIGN(const auto credentials,
                   read_aws_file(aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials")));
  VARVE_TRY_ASSIGN(const auto config, read_aws_file(aws_file("AWS_CONFIG_FILE", "config")));
  std::optional<Settings> settings;
  if (credentials) settings = section_of(*credentials, profile);
  if (config) {
    auto more = section_of(*config, profile == "default" ? profile : "profile " + profile);
    if (settings && more) settings->merge(*more);
    if (!settings) settings = std::move(more);
  }
  if (!settings && !first_of({named, environment("AWS_PROFILE")}).empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no such profile in the files of AWS", profile));
  }
  return std::move(settings).value_or(Settings{});
}

std::string setting(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string() : found->second;
}

Result<StoreCredentials> credentials_of(const std::string& id, const std::string& secret,
                                        std::string token) {
  // The id and the token are sent in HTTP headers, and a line feed would end a header.
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  if (!std::ranges::all_of(id, is_plain) || !std::ranges::all_of(token, is_plain)) {
    return Error(ErrorCode::kInvalid,
                 "the credentials have a blank, a control character or a byte above 0x7e in the "
                 "access key id or in the session token");
  }
  StoreCredentials credentials{.access_key_id = id, .session_token = std::move(token)};
  VARVE_TRY_ASSIGN(credentials.secret_access_key,
                   Secret::copy_of(std::as_bytes(std::span(secret))));
  return credentials;
}

/// `given_by` is the option or the setting with the command.
Result<StoreCredentials> command_credentials(const std::string& command, const char* given_by) {
  const auto name = fmt::format("the command for the credentials ({})", given_by);
  VARVE_TRY_ASSIGN(const auto json, output_of_command(command, name, kCommandLimit));
  return parse_credentials(json);
}

Result<StoreCredentials> find_credentials(const StoreAccess& access) {
  if (!access.credentials_command.empty()) {
    return command_credentials(access.credentials_command,
                               "--credentials-command or VARVE_CREDENTIALS_COMMAND");
  }
  const auto id = environment("AWS_ACCESS_KEY_ID");
  const auto secret = environment("AWS_SECRET_ACCESS_KEY");
  if (access.profile.empty() && !id.empty() && !secret.empty()) {
    return credentials_of(id, secret, environment("AWS_SESSION_TOKEN"));
  }
  VARVE_TRY_ASSIGN(const auto settings, profile_settings(access.profile));
  const auto own_id = setting(settings, "aws_access_key_id");
  const auto own_secret = setting(settings, "aws_secret_access_key");
  if (!own_id.empty() && !own_secret.empty()) {
    return credentials_of(own_id, own_secret, setting(settings, "aws_session_token"));
  }
  const auto process = setting(settings, "credential_process");
  if (!process.empty()) return command_credentials(process, "credential_process");
  return Error(ErrorCode::kNotPermitted,
               "no credentials for the object store; set AWS_ACCESS_KEY_ID and "
               "AWS_SECRET_ACCESS_KEY, or give --credentials-command");
}

/// Returns the time of "2026-03-01T12:00:00Z" or "2026-03-01T12:00:00.5+01:00".
std::optional<Timestamp> parse_time(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  if (*rest == '.') rest += 1 + std::string_view(rest + 1).find_first_not_of("0123456789");
  std::tm zone{};
  const std::string_view zone_text = rest;
  if (zone_text == "Z") return Timestamp{.seconds = ::timegm(&parts)};
  if (zone_text.size() != 6 || (zone_text[0] != '+' && zone_text[0] != '-')) return std::nullopt;
  const char* const end = ::strptime(rest + 1, "%H:%M", &zone);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const std::int64_t ahead = 60 * (60 * zone.tm_hour + zone.tm_min);
  return Timestamp{.seconds = ::timegm(&parts) - (zone_text[0] == '+' ? ahead : -ahead)};
}

}  // namespace

Result<StoreCredentials> parse_credentials(const Secret& json) {
  const auto bytes = json.bytes();
  const auto value =
      Json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const auto text = [&](std::string_view name) {
    const auto* const member = value.find(name);
    const auto* const found = member == nullptr ? nullptr : member->text();
    return found == nullptr ? std::string() : *found;
  };
  const auto* const version = value.find("Version");
  const auto id = text("AccessKeyId");
  const auto secret = text("SecretAccessKey");
  const bool is_known = version != nullptr && version->integer() == 1;
  if (!is_known || id.empty() || secret.empty()) {
    return Error(ErrorCode::kInvalid,
                 "the command for the credentials must print JSON with Version 1, AccessKeyId and "
                 "SecretAccessKey");
  }
  VARVE_TRY_ASSIGN(auto credentials, credentials_of(id, secret, text("SessionToken")));
  const auto expires = text("Expiration");
  if (!expires.empty()) {
    credentials.expires = parse_time(expires);
    if (!credentials.expires) {
      return Error(ErrorCode::kInvalid, "the credentials have an Expiration that is no time");
    }
  }
  return credentials;
}

Result<ObjectStoreOptions> object_store_options(const StoreAccess& access) {
  VARVE_TRY_ASSIGN(const auto settings, profile_settings(access.profile));
  return ObjectStoreOptions{
      .endpoint = first_of({access.endpoint, environment("AWS_ENDPOINT_URL_S3"),
                            environment("AWS_ENDPOINT_URL"), setting(settings, "endpoint_url")}),
      .region = first_of({access.region, environment("AWS_REGION"),
                          environment("AWS_DEFAULT_REGION"), setting(settings, "region")}),
      .credentials = [access] { return find_credentials(access); },
      .ca_file = first_of({environment("AWS_CA_BUNDLE"), setting(settings, "ca_bundle")})};
}

varve::StoreAccess store_access_of_environment() {
  return [](const StorePlace& place) {
    return object_store_options({.endpoint = place.endpoint,
                                 .region = place.region,
                                 .credentials_command = environment(kCredentialsCommandVariable)});
  };
}

}  // namespace varve::control

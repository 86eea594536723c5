// SPDX-License-Identifier: Apache-2.0
#include "cli/web_values.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "cli/output.h"
#include "cli/tree_compare.h"
#include "cli/version_path.h"
#include "varve/retention.h"

namespace varve::cli {

Result<std::uint64_t> web_number(const web::Request& request, const std::string& name,
                                 std::uint64_t most) {
  const std::string* const text = request.find(name);
  std::uint64_t number = 0;
  if (text != nullptr) {
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, number);
    if (error == std::errc() && stop == end && number <= most) return number;
  }
  return Error(ErrorCode::kInvalid, "the query needs a number: " + name);
}

Result<SeriesInfo> web_series(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const std::uint64_t number, web_number(request, "series", UINT32_MAX));
  VARVE_TRY_ASSIGN(const auto all, repository.series());
  for (const SeriesInfo& series : all) {
    if (series.id == static_cast<SeriesId>(number)) return series;
  }
  return Error(ErrorCode::kNotFound, "there is no such series");
}

Result<std::vector<VersionInfo>> sealed_versions(Repository& repository, SeriesId series) {
  VARVE_TRY_ASSIGN(auto versions, repository.versions(series));
  std::erase_if(versions, [](const auto& one) { return one.state != VersionState::kSealed; });
  std::ranges::sort(versions, is_newer);
  return versions;
}

Result<std::size_t> index_of(const std::vector<VersionInfo>& versions, std::uint64_t number) {
  const auto found =
      std::ranges::find(versions, static_cast<VersionNumber>(number), &VersionInfo::number);
  if (found != versions.end()) return static_cast<std::size_t>(found - versions.begin());
  return Error(ErrorCode::kNotFound,
               "the version at which the list continues was deleted; load the page again");
}

Json version_value(const VersionInfo& version) {
  Json object{{"number", static_cast<std::uint32_t>(version.number)},
              {"name", printable(version.name)},
              {"sealed", version.sealed_at.seconds},
              {"opened", version.opened_at.seconds},
              {"entries", version.entries},
              {"logical", version.logical_bytes},
              {"new", version.unique_bytes},
              {"stored", version.stored_bytes}};
  object["time"] = data_time(version).seconds;
  if (version.problems != 0) object["problems"] = version.problems;
  return object;
}

Json entry_value(std::string_view name, const SealedEntry& entry) {
  const Attributes& attributes = entry.attributes;
  return {{"name", printable(name)},
          {"raw", web::percent_encode(name)},
          {"type", type_text(attributes.mode)},
          {"mode", mode_text(attributes.mode)},
          {"uid", attributes.uid},
          {"gid", attributes.gid},
          {"size", attributes.size},
          {"mtime", attributes.mtime.seconds}};
}

std::string web_path(const web::Request& request) {
  const std::string* const path = request.find("path");
  return path == nullptr ? "" : parse_version_path("series/version/" + *path).path;
}

Result<WebPlace> find_web_place(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const std::uint64_t series, web_number(request, "series", UINT32_MAX));
  VARVE_TRY_ASSIGN(const std::uint64_t version, web_number(request, "version", UINT32_MAX));
  WebPlace place;
  VARVE_TRY_ASSIGN(place.reader, repository.reader(static_cast<SeriesId>(series),
                                                   static_cast<VersionNumber>(version)));
  place.path = web_path(request);
  auto entry = find_entry(*place.reader, place.path);
  if (!entry && entry.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNotFound, "this version does not have " + printable(place.path));
  }
  VARVE_TRY_ASSIGN(place.entry, std::move(entry));
  return place;
}

Json found_value(const std::string& path, const SealedEntry& entry) {
  Json object = entry_value(std::string_view(path).substr(path.rfind('/') + 1), entry);
  object["path"] = printable(path);
  object["raw"] = raw_path(path);
  return object;
}

void put_place_to_go_on(Json& object, const std::string& path) {
  std::string raw = raw_path(path);
  // Reserves 8192 bytes for the rest of the request's line and the headers.
  if (raw.size() > web::kRequestBytesMax - 8192) {
    object["cut"] = true;
  } else {
    object["behind"] = std::move(raw);
  }
}

std::string raw_path(std::string_view path) {
  std::string raw;
  while (!path.empty()) {
    const std::size_t bytes = std::min(path.find('/'), path.size());
    if (!raw.empty()) raw += '/';
    raw += web::percent_encode(path.substr(0, bytes));
    path.remove_prefix(std::min(bytes + 1, path.size()));
  }
  return raw;
}

}  // namespace varve::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/web_answers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/repository_status.h"
#include "cli/stat_fields.h"
#include "cli/tree_compare.h"
#include "cli/web_values.h"
#include "control/open_versions.h"
#include "varve/arrange.h"
#include "varve/retention.h"

namespace varve::cli {
namespace {

constexpr std::size_t kVersionsMax = 200;
constexpr std::size_t kEntriesMax = 500;
constexpr std::size_t kOccurrencesMax = 200;
constexpr std::size_t kCategoriesMax = 2000;

Result<RepositoryStatus> look_at(Repository& repository) {
  RepositoryStatus status;
  control::OpenVersions open_versions(repository);
  VARVE_TRY_ASSIGN(const auto all, repository.series());
  for (const SeriesInfo& series : all) {
    SeriesStatus one;
    one.name = series.name;
    VARVE_TRY_ASSIGN(auto versions, sealed_versions(repository, series.id));
    one.versions = versions.size();
    if (!versions.empty()) one.newest = std::move(versions.front());
    VARVE_TRY_ASSIGN(one.open, open_versions.of(series));
    VARVE_TRY_ASSIGN(one.debt, repository.arranging_debt(series.id));
    VARVE_TRY(look_at_losses(repository, series.id, one));
    VARVE_TRY_ASSIGN(one.refused, repository.refused_store(series.id));
    status.series.push_back(std::move(one));
  }
  status.checks = repository.earlier_checks();
  VARVE_TRY_ASSIGN(status.space, repository.space());
  status.now = base::SystemClock().now();
  return status;
}

}  // namespace

Result<Json> web_overview(Repository& repository, const web::Request& /*request*/) {
  VARVE_TRY_ASSIGN(const RepositoryStatus status, look_at(repository));
  VARVE_TRY_ASSIGN(const auto all, repository.series());
  VARVE_TRY_ASSIGN(const RepositoryStats stats, repository.stats());
  const auto concerns = find_concerns(status, {});
  Json object{{"repository", printable(repository.present_path())},
              {"health", name_of(concerns.empty() ? Health::kOk : concerns.front().health)},
              {"now", status.now.seconds},
              {"free", status.space.available_bytes()},
              {"disk", status.space.total_bytes()}};
  for (const StatField& field : kStatFields) {
    if (field.web != nullptr) object[field.web] = stats.*field.value;
  }
  auto& concern_list = object["concerns"] = Json::array();
  for (const Concern& concern : concerns) {
    concern_list.push_back({{"health", name_of(concern.health)}, {"text", concern.text}});
  }
  auto& checks = object["checks"] = Json::array();
  for (const EarlierCheck& check : status.checks) {
    checks.push_back(
        {{"depth", name_of(check.depth)}, {"ended", check.ended_at}, {"damages", check.damages}});
  }
  auto& list = object["series"] = Json::array();
  for (std::size_t i = 0; i < all.size() && i < status.series.size(); ++i) {
    const SeriesStatus& one = status.series[i];
    Json series{{"id", static_cast<std::uint32_t>(all[i].id)},
                {"name", printable(one.name)},
                {"versions", one.versions},
                {"arrange", one.debt.dead_bytes + one.debt.departing_bytes}};
    if (one.newest) series["newest"] = version_value(*one.newest);
    auto& open = series["open"] = Json::array();
    for (const VersionInfo& version : one.open) open.push_back(version_value(version));
    list.push_back(std::move(series));
  }
  return object;
}

Result<Json> web_versions(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, web_series(repository, request));
  VARVE_TRY_ASSIGN(const auto versions, sealed_versions(repository, series.id));
  std::size_t first = 0;
  if (request.find("below") != nullptr) {
    VARVE_TRY_ASSIGN(const auto below, web_number(request, "below", UINT32_MAX));
    first = versions.size();
    if (below != 0) {
      VARVE_TRY_ASSIGN(first, index_of(versions, below));
      ++first;
    }
  }
  Json object{{"name", printable(series.name)}, {"count", versions.size()}, {"more", false}};
  auto& list = object["versions"] = Json::array();
  for (std::size_t i = first; i < versions.size(); ++i) {
    if (i - first == kVersionsMax) {
      object["more"] = true;
      break;
    }
    Json one = version_value(versions[i]);
    if (i + 1 < versions.size()) {
      // The change visible to a user: entries and bytes against the version before.
      const VersionInfo& before = versions[i + 1];
      one["before"] = static_cast<std::uint32_t>(before.number);
      one["entries_change"] = static_cast<std::int64_t>(versions[i].entries - before.entries);
      one["logical_change"] =
          static_cast<std::int64_t>(versions[i].logical_bytes - before.logical_bytes);
    }
    list.push_back(std::move(one));
  }
  return object;
}

Result<Json> web_space(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, web_series(repository, request));
  VARVE_TRY_ASSIGN(const auto versions, sealed_versions(repository, series.id));
  VARVE_TRY_ASSIGN(const auto usages, repository.version_usage(series.id));
  VARVE_TRY_ASSIGN(const auto categories, repository.categories(series.id));
  Json object{{"name", printable(series.name)}, {"more", versions.size() > kVersionsMax}};
  auto& list = object["versions"] = Json::array();
  for (std::size_t i = 0; i < versions.size() && i < kVersionsMax; ++i) {
    const auto usage = std::ranges::find(usages, versions[i].number, &VersionUsage::number);
    if (usage == usages.end()) continue;
    list.push_back({{"number", static_cast<std::uint32_t>(usage->number)},
                    {"name", printable(versions[i].name)},
                    {"logical", usage->logical_bytes},
                    {"referenced", usage->referenced_bytes},
                    {"unique", usage->unique_bytes},
                    {"shared", usage->shared_bytes},
                    {"locked", usage->lock_holds ? usage->locked_until.seconds : 0}});
  }
  auto& all = object["categories"] = Json::array();
  for (std::size_t i = 0; i < categories.size() && i < kCategoriesMax; ++i) {
    const CategoryInfo& category = categories[i];
    all.push_back({{"birth", static_cast<std::uint32_t>(category.birth)},
                   {"death", static_cast<std::uint32_t>(category.death)},
                   {"bytes", category.bytes},
                   {"raw", category.chunk_bytes},
                   {"chunks", category.chunks}});
  }
  return object;
}

namespace {

/// Adds the sealed versions before and after the version of `place` as `previous` and `next`, with
/// whether each version has the path. An unreadable version counts as having the path: the
/// version's own view reports the error.
Result<void> put_neighbours(Repository& repository, const WebPlace& place, Json& object) {
  const VersionInfo& own = place.reader->info();
  VARVE_TRY_ASSIGN(const auto versions, sealed_versions(repository, own.series));
  const auto put = [&](const char* key, const VersionInfo& version) {
    const auto reader = repository.reader(version.series, version.number);
    const auto entry = reader ? find_entry(**reader, place.path) : reader.error();
    object[key] = {{"number", static_cast<std::uint32_t>(version.number)},
                   {"name", printable(version.name)},
                   {"has", entry || entry.error().code() != ErrorCode::kNotFound}};
  };
  // Newest first.
  const auto at = std::ranges::find(versions, own.number, &VersionInfo::number);
  if (at == versions.end()) return {};
  if (at != versions.begin()) put("next", *std::prev(at));
  if (std::next(at) != versions.end()) put("previous", *std::next(at));
  return {};
}

}  // namespace

Result<Json> web_tree(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const WebPlace place, find_web_place(repository, request));
  std::uint64_t after = 0;
  if (request.find("after") != nullptr) {
    VARVE_TRY_ASSIGN(after, web_number(request, "after", std::numeric_limits<std::int64_t>::max()));
  }
  const std::size_t slash = place.path.rfind('/') + 1;
  Json object{{"self", entry_value(std::string_view(place.path).substr(slash), place.entry)},
              {"version", version_value(place.reader->info())},
              {"more", false}};
  if (after == 0) VARVE_TRY(put_neighbours(repository, place, object));
  auto& list = object["entries"] = Json::array();
  if (!S_ISDIR(place.entry.attributes.mode)) return object;
  std::vector<std::pair<Json, SealedEntry>> found;
  VARVE_TRY(place.reader->list(
      place.entry.rank, after,
      [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
        if (found.size() == kEntriesMax) {
          object["more"] = after;
          return false;
        }
        after = position;
        found.emplace_back(entry_value(name, entry), entry);
        return true;
      }));
  for (auto& [one, entry] : found) {
    if (S_ISLNK(entry.attributes.mode)) {
      VARVE_TRY_ASSIGN(const std::string target, place.reader->read_link(entry.rank));
      one["target"] = printable(target);
    }
    list.push_back(std::move(one));
  }
  return object;
}

Result<Json> web_history(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, web_series(repository, request));
  const std::string path = web_path(request);
  if (path.empty()) return Error(ErrorCode::kInvalid, "the query needs a path");
  VARVE_TRY_ASSIGN(const auto versions, sealed_versions(repository, series.id));
  Json object{{"name", printable(series.name)},
              {"path", printable(path)},
              {"more", versions.size() > kOccurrencesMax}};
  auto& list = object["versions"] = Json::array();
  // Each version is compared with the version before, read in the next iteration.
  std::shared_ptr<VersionReader> newer_reader;
  std::optional<SealedEntry> newer;
  Json shown;
  const auto finish = [&](const char* change) {
    if (!newer) return;
    shown["change"] = change;
    list.push_back(std::move(shown));
  };
  for (std::size_t i = 0; i < versions.size() && i <= kOccurrencesMax; ++i) {
    VARVE_TRY_ASSIGN(auto reader, repository.reader(series.id, versions[i].number));
    const auto entry = find_entry(*reader, path);
    if (!entry && entry.error().code() != ErrorCode::kNotFound) return entry.error();
    if (!entry) {
      finish("new");
      newer.reset();
      continue;
    }
    if (newer) {
      Difference difference = Difference::kContent;
      if ((newer->attributes.mode & S_IFMT) == (entry->attributes.mode & S_IFMT)) {
        VARVE_TRY_ASSIGN(difference, compare_entries({*reader, *entry}, {*newer_reader, *newer},
                                                     DataCheck::kStored));
      }
      finish(difference == Difference::kContent    ? "changed"
             : difference == Difference::kMetadata ? "metadata"
                                                   : "same");
    }
    newer = *entry;
    newer_reader = std::move(reader);
    shown = version_value(versions[i]);
    shown["entry"] = entry_value(std::string_view(path).substr(path.rfind('/') + 1), *newer);
  }
  if (versions.size() <= kOccurrencesMax) finish("new");
  return object;
}

}  // namespace varve::cli

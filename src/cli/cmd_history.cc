// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/tree_compare.h"
#include "control/named_version.h"
#include "varve/version_name.h"

namespace varve::cli {
namespace {

struct HistoryArguments {
  std::vector<std::string> words;
  bool read_data = false;
  bool json = false;
  bool exact = false;
};

/// A path in a series, independent of the version.
struct FileOfSeries {
  std::string repository;
  std::string series;
  std::string path;
};

struct Occurrence {
  VersionInfo version;
  SealedEntry entry;
  const char* change = "new";  ///< Change against the version before.
};

/// Finds the file named by the words. A path in a mount has the version between the series and the
/// rest; SERIES/PATH has no version.
Result<FileOfSeries> find_file(const std::vector<std::string>& words) {
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(words, {.least = 1, .most = 1, .order = "REPO SERIES/PATH"}));
  if (!named.rest.empty()) return usage_error("there are too many arguments; see --help");
  const VersionPath& place = named.places.front();
  FileOfSeries file{named.repository, place.series, place.path};
  if (!named.in_mount) {
    file.path = place.version;
    if (!place.path.empty()) file.path += "/" + place.path;
  }
  if (file.path.empty()) {
    return usage_error(
        "no file is named; give SERIES/PATH or SERIES/VERSION/PATH, or a path in a mount");
  }
  return file;
}

/// Returns the entries of a path in the sealed versions among `versions`.
Result<std::vector<Occurrence>> occurrences_in(Repository& repository,
                                               const std::vector<VersionInfo>& versions,
                                               const std::string& path, DataCheck check) {
  std::vector<Occurrence> occurrences;
  // Null if the version before lacks the path.
  std::shared_ptr<VersionReader> reader_before;
  for (const VersionInfo& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    VARVE_TRY_ASSIGN(auto reader, repository.reader(version.series, version.number));
    const auto entry = find_entry(*reader, path);
    if (!entry) {
      if (entry.error().code() != ErrorCode::kNotFound) return entry.error();
      reader_before = nullptr;
      continue;
    }
    Occurrence occurrence{version, *entry};
    if (reader_before != nullptr) {
      const SealedEntry& before = occurrences.back().entry;
      Difference difference = Difference::kContent;
      if ((before.attributes.mode & S_IFMT) == (entry->attributes.mode & S_IFMT)) {
        VARVE_TRY_ASSIGN(difference,
                         compare_entries({*reader_before, before}, {*reader, *entry}, check));
      }
      occurrence.change = difference == Difference::kContent    ? "changed"
                          : difference == Difference::kMetadata ? "metadata"
                                                                : "same";
    }
    occurrences.push_back(std::move(occurrence));
    reader_before = std::move(reader);
  }
  return occurrences;
}

/// Removes the name of a version before the path, the form of other commands. Returns whether the
/// path began with a version.
Result<bool> drop_version(Repository& repository, const std::vector<VersionInfo>& sealed,
                          SeriesId series, std::string& path) {
  const auto end = path.find('/');
  if (end == std::string::npos) return false;
  const std::string first = path.substr(0, end);
  VARVE_TRY_ASSIGN(const auto open, repository.open_versions(series));
  const auto has_first = [&](const std::vector<VersionInfo>& some) {
    return std::ranges::find(some, first, &VersionInfo::name) != some.end();
  };
  if (first != kLatestName && !has_first(sealed) && !has_first(open)) return false;
  path.erase(0, end + 1);
  return true;
}

Result<std::vector<Occurrence>> find_occurrences(const HistoryArguments& options,
                                                 FileOfSeries& file) {
  VARVE_TRY_ASSIGN(file, find_file(options.words));
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(file.repository));
  VARVE_TRY_ASSIGN(const SeriesInfo series, control::find_series(*repository, file.series));
  VARVE_TRY_ASSIGN(const auto versions, repository->versions(series.id));
  const DataCheck check = options.read_data ? DataCheck::kRead : DataCheck::kTimes;
  VARVE_TRY_ASSIGN(auto found, occurrences_in(*repository, versions, file.path, check));
  if (!found.empty()) return found;
  VARVE_TRY_ASSIGN(const bool had_version,
                   drop_version(*repository, versions, series.id, file.path));
  if (had_version) {
    VARVE_TRY_ASSIGN(found, occurrences_in(*repository, versions, file.path, check));
    if (!found.empty()) return found;
  }
  return Error(ErrorCode::kNotFound,
               "no sealed version of series \"" + file.series + "\" has \"" + file.path + "\"");
}

void print_as_json(const Occurrence& occurrence, const FileOfSeries& file) {
  Json object = entry_json(occurrence.version, file.path, occurrence.entry.attributes);
  put_time(object, "sealed_at", occurrence.version.sealed_at);
  object["change"] = occurrence.change;
  print_json("entry", std::move(object));
}

int run_history(const HistoryArguments& options) {
  FileOfSeries file;
  const auto occurrences = find_occurrences(options, file);
  if (!occurrences) return fail(occurrences.error());
  std::vector<std::vector<std::string>> rows{{"VERSION", "SEALED", "SIZE", "MODIFIED", "CHANGE"}};
  for (const Occurrence& occurrence : *occurrences) {
    if (options.json) {
      print_as_json(occurrence, file);
      continue;
    }
    const Attributes& attributes = occurrence.entry.attributes;
    rows.push_back({name_text(file.series + "/" + occurrence.version.name),
                    time_text(occurrence.version.sealed_at),
                    size_text(attributes.size, options.exact), time_text(attributes.mtime),
                    occurrence.change});
  }
  if (!options.json) print(table(rows, "llrll"));
  return kExitOk;
}

}  // namespace

void add_history_command(CommandLine& line, const Context& /*context*/) {
  auto options = std::make_shared<HistoryArguments>();
  auto command = line.add_command(
      "history", "List the sealed versions that have a file, and where it changed");
  command.add_places(options->words,
                     "SERIES/PATH, or SERIES/VERSION/PATH, which lists all versions, too");
  command.add_flag("--read-data", options->read_data,
                   "Compare the data even if size and time are the same");
  command.add_json_flag(options->json, "one for each version that has the file");
  command.add_bytes_flag(options->exact);
  command.run([options] { return run_history(*options); });
}

}  // namespace varve::cli

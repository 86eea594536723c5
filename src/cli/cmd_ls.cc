// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/tree_compare.h"
#include "cli/version_path.h"
#include "control/open_versions.h"
#include "varve/browse.h"

namespace varve::cli {
namespace {

constexpr std::size_t kListBatch = 1024;

struct LsArguments {
  std::vector<std::string> words;
  bool details = false;
  bool json = false;
  bool exact = false;
};

struct Listed {
  std::uint64_t position = 0;
  std::string name;
  SealedEntry entry;
};

/// Adds the versions of a series to `rows`, or prints the versions as JSON.
Result<void> list_series(Repository& repository, control::OpenVersions& open_versions,
                         const SeriesInfo& series, const LsArguments& options,
                         std::vector<std::vector<std::string>>& rows) {
  VARVE_TRY_ASSIGN(auto versions, repository.versions(series.id));
  std::erase_if(versions,
                [](const VersionInfo& version) { return version.state == VersionState::kOpen; });
  VARVE_TRY_ASSIGN(const auto open, open_versions.of(series));
  versions.insert(versions.end(), open.begin(), open.end());
  if (versions.empty() && !options.json) rows.push_back({name_text(series.name) + "/"});
  if (versions.empty() && options.json) {
    Json object;
    put_name(object, "series", series.name);
    print_json("series", std::move(object));
  }
  for (const VersionInfo& version : versions) {
    const bool sealed = version.state == VersionState::kSealed;
    if (options.json) {
      print_json("version", version_json(version));
      continue;
    }
    std::vector<std::string> row{name_text(version.series_name + "/" + version.name)};
    if (!sealed && !options.details) row.front() += " (" + open_text(version) + ")";
    if (options.details) {
      row.insert(row.end(), {sealed ? time_text(version.sealed_at)
                                    : "open since " + time_text(version.opened_at),
                             fmt::format("{} entries", version.entries),
                             size_text(version.logical_bytes, options.exact),
                             size_text(version.unique_bytes, options.exact) + " new"});
      if (version.claimed_at) row.push_back("claims " + time_text(*version.claimed_at));
      if (version.problems != 0) row.push_back("incomplete");
      if (version.origin) {
        row.push_back("copied, sealed " + time_text(version.origin->sealed_at));
      }
    }
    rows.push_back(std::move(row));
  }
  return {};
}

Result<void> print_entry_json(VersionReader& reader, const std::string& directory,
                              const std::string& name, const SealedEntry& entry) {
  const Attributes& a = entry.attributes;
  const std::string path = directory.empty() ? name : directory + "/" + name;
  Json object = entry_json(reader.info(), path, a);
  object["mode"] = fmt::format("{:04o}", a.mode & 07777);
  object["uid"] = a.uid;
  object["gid"] = a.gid;
  object["nlink"] = a.nlink;
  object["data_bytes"] = a.data_bytes;
  if (S_ISLNK(a.mode)) {
    VARVE_TRY_ASSIGN(const std::string target, reader.read_link(entry.rank));
    put_name(object, "target", target);
  }
  if (S_ISBLK(a.mode) || S_ISCHR(a.mode)) {
    object["rdev"] = fmt::format("{}:{}", major(a.rdev), minor(a.rdev));
  }
  print_json("entry", std::move(object));
  return {};
}

Result<std::vector<std::string>> details_row(VersionReader& reader, const std::string& name,
                                             const SealedEntry& entry, bool exact) {
  const Attributes& a = entry.attributes;
  std::string text = name_text(name);
  if (S_ISLNK(a.mode)) {
    VARVE_TRY_ASSIGN(const std::string target, reader.read_link(entry.rank));
    text += " -> " + name_text(target);
  }
  const bool device = S_ISBLK(a.mode) || S_ISCHR(a.mode);
  return std::vector<std::string>{
      mode_text(a.mode),
      std::to_string(a.nlink),
      std::to_string(a.uid),
      std::to_string(a.gid),
      device ? fmt::format("{}, {}", major(a.rdev), minor(a.rdev)) : size_text(a.size, exact),
      time_text(a.mtime),
      text};
}

Result<void> print_batch(VersionReader& reader, const std::string& directory,
                         const std::vector<Listed>& batch, const LsArguments& options) {
  std::vector<std::vector<std::string>> rows;
  for (const Listed& item : batch) {
    if (options.json) {
      VARVE_TRY(print_entry_json(reader, directory, item.name, item.entry));
    } else if (options.details) {
      VARVE_TRY_ASSIGN(auto row, details_row(reader, item.name, item.entry, options.exact));
      rows.push_back(std::move(row));
    } else {
      print(name_text(item.name) + "\n");
    }
  }
  print(table(rows, "lrrrrll"));
  return {};
}

Result<void> list_files(Repository& repository, const VersionPath& path,
                        const LsArguments& options) {
  VARVE_TRY_ASSIGN(const VersionInfo info, find_version(repository, path));
  VARVE_TRY_ASSIGN(const auto reader, repository.reader(info.series, info.number));
  auto found = find_entry(*reader, path.path);
  if (!found && found.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNotFound,
                 "there is no file \"" + path.series + "/" + info.name + "/" + path.path + "\"");
  }
  if (!found) return std::move(found).error().with_context(path.path);
  const SealedEntry& entry = *found;
  if (!S_ISDIR(entry.attributes.mode)) {
    const std::size_t slash = path.path.rfind('/');
    const bool is_top = slash == std::string::npos;
    return print_batch(*reader, is_top ? "" : path.path.substr(0, slash),
                       {{0, path.path.substr(is_top ? 0 : slash + 1), entry}}, options);
  }
  std::vector<Listed> batch;
  std::uint64_t after = 0;
  do {
    batch.clear();
    VARVE_TRY(reader->list(
        entry.rank, after,
        [&](std::uint64_t position, std::string_view entry_name, const SealedEntry& listed) {
          batch.push_back({position, std::string(entry_name), listed});
          return batch.size() < kListBatch;
        }));
    VARVE_TRY(print_batch(*reader, path.path, batch, options));
    if (!batch.empty()) after = batch.back().position;
  } while (batch.size() == kListBatch);
  return {};
}

Result<void> list(const LsArguments& options) {
  VARVE_TRY_ASSIGN(const NamedPlaces named, find_places(options.words, {.most = 1}));
  if (!named.rest.empty()) {
    return usage_error("there are too many arguments; see --help");
  }
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  const VersionPath path = named.places.empty() ? VersionPath() : named.places.front();
  if (!path.version.empty()) return list_files(*repository, path, options);
  VARVE_TRY_ASSIGN(const auto all_series, find_series(*repository, named.places));
  control::OpenVersions open_versions(*repository);
  std::vector<std::vector<std::string>> rows;
  for (const SeriesInfo& series : all_series) {
    VARVE_TRY(list_series(*repository, open_versions, series, options, rows));
  }
  print(table(rows, "llrrr"));
  return {};
}

int run_ls(const LsArguments& options) {
  const auto listed = list(options);
  return listed ? kExitOk : fail(listed.error());
}

}  // namespace

void add_ls_command(CommandLine& line, const Context& /*context*/) {
  auto options = std::make_shared<LsArguments>();
  auto command = line.add_command("ls", "List versions, or files of a version");
  command.add_places(options->words,
                     "SERIES to list its versions, or SERIES/VERSION[/path] to list files "
                     "(default: all versions)");
  command.add_flag("-l,--long", options->details, "Print sizes, times and attributes too");
  command.add_json_flag(options->json, "one for each version or file");
  command.add_bytes_flag(options->exact);
  command.add_alias("list");
  command.add_alias("snapshots");
  command.run([options] { return run_ls(*options); });
}

}  // namespace varve::cli

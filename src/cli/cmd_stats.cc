// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/repository_access.h"

namespace varve::cli {
namespace {

struct Options {
  std::string repository;
  bool json = false;
  bool exact = false;
};

struct Figures {
  RepositoryStats totals;
  std::vector<VersionInfo> versions;
};

Result<Figures> collect(const std::string& path) {
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(path));
  Figures figures;
  VARVE_TRY_ASSIGN(const auto all_series, repository->series());
  for (const SeriesInfo& series : all_series) {
    VARVE_TRY_ASSIGN(const auto versions, repository->versions(series.id));
    figures.versions.insert(figures.versions.end(), versions.begin(), versions.end());
  }
  VARVE_TRY_ASSIGN(figures.totals, repository->stats());
  return figures;
}

/// How many times the stored data would be as big without deduplication; 0 if it is empty.
double dedup_ratio(const RepositoryStats& totals) {
  if (totals.unique_bytes == 0) return 0;
  return static_cast<double>(totals.logical_bytes) / static_cast<double>(totals.unique_bytes);
}

void print_as_json(const Figures& figures) {
  const RepositoryStats& t = figures.totals;
  print_json({{"series", t.series},
              {"versions_sealed", t.versions_sealed},
              {"versions_open", t.versions_open},
              {"logical_bytes", t.logical_bytes},
              {"unique_bytes", t.unique_bytes},
              {"frame_bytes", t.frame_bytes},
              {"container_bytes", t.container_bytes},
              {"containers", t.containers},
              {"chunks", t.chunks},
              {"catalog_bytes", t.catalog_bytes},
              {"index_bytes", t.index_bytes},
              {"staging_bytes", t.staging_bytes},
              {"dedup_ratio", dedup_ratio(t)}});
  for (const VersionInfo& version : figures.versions) {
    nlohmann::json object{{"state", version.state == VersionState::kSealed ? "sealed" : "open"},
                          {"opened_at", iso_time(version.opened_at)},
                          {"entries", version.entries},
                          {"logical_bytes", version.logical_bytes},
                          {"unique_bytes", version.unique_bytes},
                          {"stored_bytes", version.stored_bytes}};
    put_name(object, "version", version.series_name + "/" + version.name);
    if (version.state == VersionState::kSealed) object["sealed_at"] = iso_time(version.sealed_at);
    print_json(object);
  }
}

void print_as_text(const Figures& figures, bool exact) {
  std::vector<std::vector<std::string>> rows{
      {"VERSION", "SEALED", "ENTRIES", "SIZE", "NEW", "STORED"}};
  for (const VersionInfo& version : figures.versions) {
    rows.push_back({printable(version.series_name + "/" + version.name),
                    version.state == VersionState::kSealed ? time_text(version.sealed_at) : "open",
                    std::to_string(version.entries), size_text(version.logical_bytes, exact),
                    size_text(version.unique_bytes, exact),
                    size_text(version.stored_bytes, exact)});
  }
  if (rows.size() > 1) print(table(rows, "llrrrr") + "\n");
  const RepositoryStats& t = figures.totals;
  const auto size = [&](std::uint64_t bytes) { return size_text(bytes, exact); };
  print(
      table({{"series", std::to_string(t.series)},
             {"versions", fmt::format("{} sealed, {} open", t.versions_sealed, t.versions_open)},
             {"all versions' data", size(t.logical_bytes)},
             {"without duplicates", fmt::format("{} in {} chunks", size(t.unique_bytes), t.chunks)},
             {"compressed", size(t.frame_bytes)},
             {"containers", fmt::format("{} in {}", size(t.container_bytes), t.containers)},
             {"catalog", size(t.catalog_bytes)},
             {"index", size(t.index_bytes)},
             {"staging", size(t.staging_bytes)},
             {"dedup ratio", t.unique_bytes == 0 ? "-" : fmt::format("{:.2f}", dedup_ratio(t))}},
            "ll"));
}

int run_stats(Options options) {
  if (const auto given = take_repository({&options.repository}); !given) {
    return fail(given.error());
  }
  const auto figures = collect(options.repository);
  if (!figures) return fail(figures.error());
  if (options.json) {
    print_as_json(*figures);
  } else {
    print_as_text(*figures, options.exact);
  }
  return kExitOk;
}

}  // namespace

void add_stats_command(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("stats", "Print sizes of the repository and of each version");
  command->add_option("REPO", options->repository, kRepositoryHelp);
  command->add_flag("--json", options->json, "JSON lines: the totals, then one for each version");
  command->add_flag("--bytes", options->exact, "Exact numbers of bytes instead of KiB, MiB, GiB");
  command->callback(
      [options, &context] { context.run = [options] { return run_stats(*options); }; });
}

}  // namespace varve::cli

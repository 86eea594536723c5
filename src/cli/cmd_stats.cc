// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/metrics_output.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pool_usage_output.h"
#include "cli/repository_access.h"
#include "cli/stat_fields.h"
#include "cli/stats_export.h"
#include "cli/store_usage_output.h"
#include "control/client.h"
#include "control/open_versions.h"
#include "varve/encryption.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"

namespace varve::cli {
namespace {

struct StatsArguments {
  std::vector<std::string> words;
  std::string repository;  ///< Set from `words`.
  bool json = false;
  bool exact = false;
  bool categories = false;
  bool delta = false;
  bool prometheus = false;
  bool live = false;
  bool streams = false;
  std::string prices;
};

struct Figures {
  RepositoryStats totals;
  std::vector<SeriesFigures> series;
  ArrangingDebt debt;  ///< Sum over all series.
  ArrangeSettings settings;
  std::optional<EncryptionInfo> encryption{};
  std::optional<StoreUsage> store{};
  std::optional<StorePrices> prices{};
};

Result<Figures> collect(Repository& repository) {
  Figures figures;
  control::OpenVersions open_versions(repository);
  VARVE_TRY_ASSIGN(auto all_series, repository.series());
  for (SeriesInfo& series : all_series) {
    SeriesFigures& one = figures.series.emplace_back();
    VARVE_TRY_ASSIGN(one.versions, repository.versions(series.id));
    VARVE_TRY_ASSIGN(one.open, open_versions.of(series));
    VARVE_TRY_ASSIGN(one.debt, repository.arranging_debt(series.id));
    VARVE_TRY_ASSIGN(one.refused, repository.refused_store(series.id));
    one.series = std::move(series);
    figures.debt.active_bytes += one.debt.active_bytes;
    figures.debt.dead_bytes += one.debt.dead_bytes;
    figures.debt.departing_bytes += one.debt.departing_bytes;
    figures.debt.runs += one.debt.runs;
    figures.debt.volume_bytes += one.debt.volume_bytes;
  }
  VARVE_TRY_ASSIGN(figures.totals, repository.stats());
  VARVE_TRY_ASSIGN(figures.settings, repository.arrange_settings());
  return figures;
}

/// Returns the size without deduplication divided by the stored size; 0 if nothing is stored.
double dedup_ratio(const RepositoryStats& totals) {
  if (totals.unique_bytes == 0) return 0;
  return static_cast<double>(totals.logical_bytes) / static_cast<double>(totals.unique_bytes);
}

std::vector<VersionInfo> all_versions(const Figures& figures) {
  std::vector<VersionInfo> all;
  for (const SeriesFigures& series : figures.series) {
    std::ranges::copy_if(series.versions, std::back_inserter(all), [](const VersionInfo& version) {
      return version.state == VersionState::kSealed;
    });
    all.insert(all.end(), series.open.begin(), series.open.end());
  }
  return all;
}

void print_as_json(const Figures& figures) {
  const RepositoryStats& t = figures.totals;
  Json totals{{"encryption", figures.encryption ? figures.encryption->cipher : "none"}};
  for (const StatField& field : kStatFields) totals[field.json] = t.*field.value;
  totals["parity_percent"] = figures.settings.parity_percent;
  totals["active_bytes"] = figures.debt.active_bytes;
  totals["dead_bytes"] = figures.debt.dead_bytes;
  totals["departing_bytes"] = figures.debt.departing_bytes;
  totals["runs"] = figures.debt.runs;
  totals["volume_bytes"] = figures.debt.volume_bytes;
  totals["delta"] = figures.settings.delta != 0;
  totals["policy"] = name_of(figures.settings.policy);
  totals["dedup_ratio"] = dedup_ratio(t);
  if (t.sequence != 0) totals["sequence"] = t.sequence;
  print_json("stats", std::move(totals));
  for (const VersionInfo& version : all_versions(figures)) {
    print_json("version", version_json(version));
  }
}

std::string encryption_text(const Figures& figures) {
  if (!figures.encryption) return "none";
  const auto keys = figures.encryption->slots.size();
  return fmt::format("{}, {} key{}", figures.encryption->cipher, keys, keys == 1 ? "" : "s");
}

void print_as_text(const Figures& figures, bool exact) {
  std::vector<std::vector<std::string>> rows{
      {"VERSION", "SEALED", "ENTRIES", "SIZE", "NEW", "STORED"}};
  for (const VersionInfo& version : all_versions(figures)) {
    rows.push_back({printable(version.series_name + "/" + version.name),
                    version.state == VersionState::kSealed ? time_text(version.sealed_at) : "open",
                    std::to_string(version.entries), size_text(version.logical_bytes, exact),
                    size_text(version.unique_bytes, exact),
                    size_text(version.stored_bytes, exact)});
  }
  if (rows.size() > 1) print(table(rows, "llrrrr") + "\n");
  const RepositoryStats& t = figures.totals;
  const auto size = [&](std::uint64_t bytes) { return size_text(bytes, exact); };
  rows = {
      {"encryption", encryption_text(figures)},
      {"series", std::to_string(t.series)},
      {"versions", fmt::format("{} sealed, {} open", t.versions_sealed, t.versions_open)},
      {"all versions' data", size(t.logical_bytes)},
      {"without duplicates", fmt::format("{} in {} chunks", size(t.unique_bytes), t.chunks)},
      {"compressed", size(t.frame_bytes)},
      {"containers", fmt::format("{} in {}", size(t.container_bytes), t.containers)},
      {"catalog",
       fmt::format("{}, {} of it free", size(t.catalog_bytes), size(t.catalog_free_bytes))},
      {"manifests", size(t.manifest_bytes)},
      {"index", size(t.index_bytes)},
      {"reserve", size(t.reserve_bytes)},
      {"staging", size(t.staging_bytes)},
      {"parity",
       fmt::format("{} ({} % wanted)", size(t.parity_bytes), figures.settings.parity_percent)},
      {"all files",
       fmt::format("{}, {} more than compressed", size(t.repository_bytes),
                   size(t.repository_bytes - std::min(t.frame_bytes, t.repository_bytes)))},
      {"active set", fmt::format("{} in {} runs, {} of it dead", size(figures.debt.active_bytes),
                                 figures.debt.runs, size(figures.debt.dead_bytes))},
      {"volumes", size(figures.debt.volume_bytes)},
      {"delta", figures.settings.delta != 0 ? "on (--delta shows the savings)" : "off"},
      {"pool", fmt::format("{}, and {} in {} aliases; {} not compared yet", size(t.pool_bytes),
                           size(t.pool_alias_bytes), t.pool_aliases, size(t.pool_new_bytes))},
      {"to be arranged", fmt::format("{} (policy {})", size(figures.debt.departing_bytes),
                                     name_of(figures.settings.policy))},
      {"dedup ratio", t.unique_bytes == 0 ? "-" : fmt::format("{:.2f}", dedup_ratio(t))}};
  if (t.sequence != 0) rows.push_back({"sequence number", std::to_string(t.sequence)});
  print(table(rows, "ll"));
}

std::string number_text(VersionNumber number) {
  return std::to_string(static_cast<std::uint32_t>(number));
}

void print_category_json(const CategoryInfo& category, const SeriesInfo& series) {
  Json object{{"birth", static_cast<std::uint32_t>(category.birth)},
              {"death", static_cast<std::uint32_t>(category.death)},
              {"file", category.file},
              {"stored_bytes", category.bytes},
              {"chunk_bytes", category.chunk_bytes},
              {"chunks", category.chunks},
              {"live", category.live}};
  put_name(object, "series", series.name);
  print_json("category", std::move(object));
}

Result<void> print_categories(Repository& repository, const StatsArguments& options) {
  VARVE_TRY_ASSIGN(const auto all_series, repository.series());
  std::vector<std::vector<std::string>> rows{
      {"SERIES", "BIRTH", "DEATH", "BYTES", "RAW", "CHUNKS", "LIVE", "FILE"}};
  for (const SeriesInfo& series : all_series) {
    VARVE_TRY_ASSIGN(const auto categories, repository.categories(series.id));
    for (const CategoryInfo& category : categories) {
      if (options.json) {
        print_category_json(category, series);
        continue;
      }
      const bool active = category.death == VersionNumber{};
      rows.push_back(
          {name_text(series.name), number_text(category.birth),
           active ? "-" : number_text(category.death), size_text(category.bytes, options.exact),
           size_text(category.chunk_bytes, options.exact), std::to_string(category.chunks),
           category.live ? "yes" : "no", active ? "active set" : category.file});
    }
  }
  if (!options.json) print(table(rows, "lrrrrrll"));
  return {};
}

std::uint64_t saved_bytes(const DeltaSavings& savings) {
  return savings.frame_plain_bytes -
         std::min(savings.frame_plain_bytes, savings.frame_stored_bytes);
}

void print_delta_json(const DeltaSavings& savings, const SeriesInfo& series) {
  Json object{{"volume_bytes", savings.volume_bytes},
              {"raw_bytes", savings.raw_bytes},
              {"frames", savings.frames},
              {"frame_raw_bytes", savings.frame_raw_bytes},
              {"frame_stored_bytes", savings.frame_stored_bytes},
              {"estimated_plain_bytes", savings.frame_plain_bytes},
              {"estimated_saved_bytes", saved_bytes(savings)},
              {"containers_left_out", savings.containers_left_out}};
  put_name(object, "series", series.name);
  print_json("delta", std::move(object));
}

Result<void> print_delta(Repository& repository, const StatsArguments& options) {
  VARVE_TRY_ASSIGN(const auto all_series, repository.series());
  std::vector<std::vector<std::string>> rows{
      {"SERIES", "VOLUMES", "WITH PREFIX", "STORED", "WITHOUT, ABOUT", "SAVED, ABOUT", "SHARE"}};
  std::uint64_t left_out = 0;
  for (const SeriesInfo& series : all_series) {
    VARVE_TRY_ASSIGN(const auto savings, repository.delta_savings(series.id));
    left_out += savings.containers_left_out;
    if (options.json) {
      print_delta_json(savings, series);
      continue;
    }
    const auto size = [&](std::uint64_t bytes) { return size_text(bytes, options.exact); };
    const auto saved = saved_bytes(savings);
    const auto without = static_cast<double>(savings.volume_bytes + saved);
    rows.push_back(
        {name_text(series.name), size(savings.volume_bytes),
         fmt::format("{} in {} frames", size(savings.frame_raw_bytes), savings.frames),
         size(savings.frame_stored_bytes), size(savings.frame_plain_bytes), size(saved),
         saved == 0 ? "-" : fmt::format("{:.0f} %", static_cast<double>(saved) / without * 100)});
  }
  if (!options.json) print(table(rows, "lrrrrrr"));
  if (left_out != 0) {
    report_problems({fmt::format("{} containers could not be read, and are left out", left_out)});
  }
  return {};
}

Result<std::vector<MetricSample>> ask_daemon(const std::string& repository) {
  VARVE_TRY_ASSIGN(auto daemon, control::Client::connect(repository));
  return daemon.ask<control::Operation::kMetrics>();
}

/// Returns the error of a silent daemon.
Error no_answer(const std::string& repository, const Error& error) {
  const auto opened = open_to_read(repository);  // The path may be no repository.
  if (!opened) return opened.error();
  if (error.code() != ErrorCode::kNotFound) return error;
  return Error(
      ErrorCode::kNotFound,
      fmt::format("{} is not mounted, or only read-only, or its daemon has ended, so no daemon "
                  "can be asked; mount it with `varve mount`, without -o ro (after `varve "
                  "umount`, if the daemon has ended)",
                  repository));
}

Result<std::vector<PoolStream>> ask_for_streams(const std::string& repository) {
  VARVE_TRY_ASSIGN(auto daemon, control::Client::connect(repository));
  return daemon.ask<control::Operation::kPoolStreams>();
}

void print_stream_json(const PoolStream& stream) {
  Json object{{"open", stream.is_open},        {"entries", stream.entries},
              {"locality", stream.locality},   {"lookups", stream.lookups},
              {"hits", stream.hits},           {"run_threshold", stream.run_threshold},
              {"admitted", stream.is_admitted}};
  if (!stream.name.empty()) put_name(object, "series", stream.name);
  print_json("stream", std::move(object));
}

Result<void> print_streams(const StatsArguments& options) {
  const auto streams = ask_for_streams(options.repository);
  if (!streams) return no_answer(options.repository, streams.error());
  std::vector<std::vector<std::string>> rows{
      {"SERIES", "OPEN", "ENTRIES", "TLI", "LOOKUPS", "FOUND", "T", "ADMITTED"}};
  for (const PoolStream& stream : *streams) {
    if (options.json) {
      print_stream_json(stream);
      continue;
    }
    const auto found = static_cast<double>(stream.hits) /
                       static_cast<double>(std::max<std::uint64_t>(stream.lookups, 1));
    rows.push_back({stream.name.empty() ? "(none)" : name_text(stream.name),
                    stream.is_open ? "yes" : "no", std::to_string(stream.entries),
                    std::to_string(stream.locality), std::to_string(stream.lookups),
                    stream.lookups == 0 ? "-" : fmt::format("{:.1f} %", found * 100),
                    std::to_string(stream.run_threshold), stream.is_admitted ? "yes" : "no"});
  }
  if (options.json) return {};
  if (streams->empty()) {
    print("no streams: the daemon has not used the pool with the index `stream`\n");
  } else {
    print(table(rows, "llrrrrrl"));
  }
  return {};
}

Result<void> print_live(const StatsArguments& options) {
  const auto samples = ask_daemon(options.repository);
  if (!samples) return no_answer(options.repository, samples.error());
  if (!options.json) print(metrics_table(*samples, options.exact));
  for (const MetricSample& sample : *samples) {
    if (options.json) print_json("metric", metric_json(sample));
  }
  return {};
}

/// Prints the figures of the repository, and the metrics of the daemon if there is one.
Result<void> print_for_prometheus(Repository& repository, const Figures& figures) {
  RepositoryFigures whole;
  whole.totals = figures.totals;
  whole.checks = repository.earlier_checks();
  VARVE_TRY_ASSIGN(whole.space, repository.space());
  print(prometheus_text(repository.path(), whole, figures.series));
  if (figures.store) print(store_usage_metrics(repository.path(), *figures.store));
  const auto samples = ask_daemon(repository.path());
  if (samples) {
    print(prometheus_metrics(repository.path(), *samples));
  } else if (samples.error().code() != ErrorCode::kNotFound) {
    report_problems({"the metrics of the daemon are missing: " + samples.error().message()});
  }
  return {};
}

Result<void> print_version(const StatsArguments& options, const VersionPath& place) {
  if (options.live || options.categories || options.delta || options.prometheus ||
      options.streams) {
    return usage_error(
        "--live, --streams, --categories, --delta and --prometheus are about the whole repository; "
        "leave out the version");
  }
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository));
  control::OpenVersions open_versions(*repository);
  VARVE_TRY_ASSIGN(const auto version, find_any_version(*repository, open_versions, place));
  const std::string name = version.series_name + "/" + version.name;
  if (version.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid,
                 name + " is open; the seal records its figures (`varve stat` shows its size)");
  }
  VARVE_TRY_ASSIGN(const auto usage, repository->pool_usage(version.series, version.number));
  if (options.json) {
    Json object = pool_usage_json(usage);
    put_version(object, version);
    print_json("pool_usage", std::move(object));
  } else {
    print(pool_usage_text(usage, options.exact));
  }
  return {};
}

Result<void> print_stats(const StatsArguments& options) {
  if (options.live) return print_live(options);
  if (options.streams) return print_streams(options);
  std::optional<StorePrices> prices;
  if (!options.prices.empty()) {
    VARVE_TRY_ASSIGN(prices, read_prices(options.prices));
  }
  // Before opening the repository: a process can open the state of its store only once at a time.
  VARVE_TRY_ASSIGN(const auto folder, repository_at(options.repository, control::Purpose::kLook));
  VARVE_TRY_ASSIGN(auto store, RemoteFolder(folder, is_trusted(folder)).usage());
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository));
  if (options.categories) return print_categories(*repository, options);
  if (options.delta) return print_delta(*repository, options);
  VARVE_TRY_ASSIGN(Figures figures, collect(*repository));
  figures.store = std::move(store);
  figures.prices = std::move(prices);
  if (options.prometheus) return print_for_prometheus(*repository, figures);
  const auto path = repository->path();
  VARVE_TRY_ASSIGN(figures.encryption, read_encryption(path, is_trusted(path)));
  const auto* const charged = figures.prices ? &*figures.prices : nullptr;
  if (options.json) {
    print_as_json(figures);
    if (figures.store) print_store_usage_json(*figures.store, charged);
  } else {
    print_as_text(figures, options.exact);
    if (figures.store) print_store_usage(*figures.store, charged, options.exact);
  }
  return {};
}

Result<void> stats(StatsArguments options) {
  VARVE_TRY_ASSIGN(const NamedPlaces named, find_places(options.words, {.most = 1}));
  if (!named.rest.empty()) {
    return usage_error("there are too many arguments; see --help");
  }
  options.repository = named.repository;
  return named.places.empty() ? print_stats(options) : print_version(options, named.places.front());
}

int run_stats(StatsArguments options, const Context& context) {
  if (options.prices.empty()) options.prices = context.instance.value("VARVE_PRICES");
  const auto printed = stats(options);
  return printed ? kExitOk : fail(printed.error());
}

}  // namespace

void add_stats_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<StatsArguments>();
  auto command = line.add_command(
      "stats",
      "Print sizes of the repository and of each version, or one version's use of the pool");
  command.add_places(options->words, "SERIES/VERSION (default: the whole repository)");
  auto json = command.add_json_flag(options->json,
                                    "the totals, then one for each version; or the one version");
  auto categories = command.add_flag(
      "--categories", options->categories,
      "What is stored, by the first and the last version that refers to it, instead");
  auto delta = command.add_flag(
      "--delta", options->delta,
      "Instead: for each series, what the setting `delta` saves; reads the headers of all volumes");
  delta.excludes(categories);
  auto prometheus = command.add_flag(
      "--prometheus", options->prometheus,
      "Instead: for Prometheus' textfile collector, also with the metrics of the daemon");
  prometheus.excludes(json).excludes(categories).excludes(delta);
  auto live =
      command.add_flag("--live", options->live,
                       "Instead: the metrics of the daemon that has the repository mounted");
  live.excludes(prometheus).excludes(categories).excludes(delta);
  command
      .add_flag("--streams", options->streams,
                "Instead: what the daemon's index `stream` knows of each series")
      .excludes(prometheus)
      .excludes(categories)
      .excludes(delta)
      .excludes(live);
  command.add_bytes_flag(options->exact);
  command
      .add_option("--prices", options->prices,
                  "File with the prices of an object store, to print what its use costs")
      .type_name("FILE");
  command.run([options, &context] { return run_stats(*options, context); });
}

}  // namespace varve::cli

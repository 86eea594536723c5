// SPDX-License-Identifier: Apache-2.0
#include "cli/stats_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "cli/output.h"
#include "cli/stat_fields.h"

namespace varve::cli {
namespace {

std::uint64_t logical_bytes(const std::vector<VersionInfo>& versions) {
  std::uint64_t sum = 0;
  for (const VersionInfo& version : versions) sum += version.logical_bytes;
  return sum;
}

const VersionInfo* newest_sealed(const SeriesFigures& figures) {
  const VersionInfo* newest = nullptr;
  for (const VersionInfo& version : figures.versions) {
    if (version.state == VersionState::kSealed) newest = &version;
  }
  return newest;
}

struct SeriesGauge {
  const char* name;
  const char* help;
  /// Returns the value for a series with a sealed version. `newest`: the newest sealed version.
  std::function<std::string(const SeriesFigures&, const VersionInfo& newest)> value;
};

std::vector<SeriesGauge> series_gauges() {
  return {
      {"varve_last_sealed_timestamp_seconds", "When the newest version was sealed.",
       [](const SeriesFigures&, const VersionInfo& newest) {
         return fmt::format("{}.{:03}", newest.sealed_at.seconds,
                            newest.sealed_at.nanoseconds / 1'000'000);
       }},
      {"varve_last_version_problems",
       "Files of the newest sealed version that were not stored, or not as they are.",
       [](const SeriesFigures&, const VersionInfo& newest) {
         return std::to_string(newest.problems);
       }},
      {"varve_last_version_logical_bytes", "File data of the newest sealed version.",
       [](const SeriesFigures&, const VersionInfo& newest) {
         return std::to_string(newest.logical_bytes);
       }},
      {"varve_last_version_new_bytes", "Raw bytes that were new in the newest sealed version.",
       [](const SeriesFigures&, const VersionInfo& newest) {
         return std::to_string(newest.unique_bytes);
       }},
      {"varve_last_version_entries", "Names in the newest sealed version.",
       [](const SeriesFigures&, const VersionInfo& newest) {
         return std::to_string(newest.entries);
       }},
      {"varve_versions", "Sealed versions.",
       [](const SeriesFigures& series, const VersionInfo&) {
         return std::to_string(
             std::ranges::count(series.versions, VersionState::kSealed, &VersionInfo::state));
       }},
      {"varve_series_logical_bytes", "File data of all sealed versions.",
       [](const SeriesFigures& series, const VersionInfo&) {
         return std::to_string(logical_bytes(series.versions));
       }},
      {"varve_series_dead_bytes", "Raw bytes in the active set that no version needs.",
       [](const SeriesFigures& series, const VersionInfo&) {
         return std::to_string(series.debt.dead_bytes);
       }},
      {"varve_series_departing_bytes", "Raw bytes that arranging has yet to move.",
       [](const SeriesFigures& series, const VersionInfo&) {
         return std::to_string(series.debt.departing_bytes);
       }},
  };
}

/// Adds a sample for each series whose last store was refused.
void add_refused_stores(std::string& text, const std::string& repository,
                        const std::vector<SeriesFigures>& series) {
  constexpr const char* kGauge = "varve_store_refused_timestamp_seconds";
  add_prometheus_header(text, kGauge,
                        "When a store was refused, if no version was sealed since then.", "gauge");
  for (const SeriesFigures& one : series) {
    if (!one.refused) continue;
    text += fmt::format("{}{{repository=\"{}\",series=\"{}\",reason=\"{}\"}} {}\n", kGauge,
                        repository, prometheus_label(one.series.name),
                        one.refused->reason == RefusalReason::kEmpty ? "empty" : "shrunk",
                        one.refused->at.seconds);
  }
}

}  // namespace

std::string prometheus_label(std::string_view value) {
  const std::string plain = is_utf8(value) ? std::string(value) : printable(value);
  std::string text;
  for (const char c : plain) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

void add_prometheus_header(std::string& text, std::string_view name, std::string_view help,
                           std::string_view type) {
  std::string escaped;
  for (const char c : help) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped, name, type);
}

std::string prometheus_text(std::string_view repository, const RepositoryFigures& figures,
                            const std::vector<SeriesFigures>& series) {
  std::string text;
  const RepositoryStats& totals = figures.totals;
  const std::string name = prometheus_label(repository);
  const auto add_total = [&](std::string_view gauge, std::string_view help, std::uint64_t value) {
    add_prometheus_header(text, gauge, help, "gauge");
    text += fmt::format("{}{{repository=\"{}\"}} {}\n", gauge, name, value);
  };
  for (const StatField& field : kStatFields) {
    if (field.gauge != nullptr) add_total(field.gauge, field.help, totals.*field.value);
  }
  add_total("varve_repository_free_bytes", "Bytes of the disk that its user may still write.",
            figures.space.available_bytes());
  add_total("varve_repository_disk_bytes", "Bytes of the disk.", figures.space.total_bytes());
  const auto add_checks = [&](std::string_view gauge, std::string_view help, const auto& value) {
    add_prometheus_header(text, gauge, help, "gauge");
    for (const EarlierCheck& check : figures.checks) {
      text += fmt::format("{}{{repository=\"{}\",depth=\"{}\"}} {}\n", gauge, name,
                          name_of(check.depth), value(check));
    }
  };
  add_checks("varve_check_ended_timestamp_seconds", "When the last check of this depth ended.",
             [](const EarlierCheck& check) { return check.ended_at; });
  add_checks("varve_check_damages", "Damaged places that it found.",
             [](const EarlierCheck& check) { return check.damages; });
  const auto add_open = [&](std::string_view gauge, std::string_view help,
                            const std::function<std::uint64_t(const VersionInfo&)>& value) {
    add_prometheus_header(text, gauge, help, "gauge");
    for (const SeriesFigures& one : series) {
      for (const VersionInfo& version : one.open) {
        text += fmt::format("{}{{repository=\"{}\",series=\"{}\",version=\"{}\"}} {}\n", gauge,
                            name, prometheus_label(one.series.name), prometheus_label(version.name),
                            value(version));
      }
    }
  };
  add_open("varve_open_version_opened_timestamp_seconds", "When the open version was opened.",
           [](const VersionInfo& version) {
             return static_cast<std::uint64_t>(version.opened_at.seconds);
           });
  add_open("varve_open_version_entries", "Names in the open version.",
           [](const VersionInfo& version) { return version.entries; });
  add_refused_stores(text, name, series);
  for (const SeriesGauge& gauge : series_gauges()) {
    add_prometheus_header(text, gauge.name, gauge.help, "gauge");
    for (const SeriesFigures& one : series) {
      const VersionInfo* newest = newest_sealed(one);
      if (newest == nullptr) continue;
      text += fmt::format("{}{{repository=\"{}\",series=\"{}\"}} {}\n", gauge.name, name,
                          prometheus_label(one.series.name), gauge.value(one, *newest));
    }
  }
  return text;
}

}  // namespace varve::cli

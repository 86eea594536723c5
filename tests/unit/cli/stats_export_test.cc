// SPDX-License-Identifier: Apache-2.0
#include "cli/stats_export.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace varve::cli {
namespace {

SeriesFigures laptop() {
  SeriesFigures figures;
  figures.series.name = "lap\"top\\";
  VersionInfo sealed;
  sealed.state = VersionState::kSealed;
  sealed.sealed_at = {1700000000, 250000000};
  sealed.logical_bytes = 1000;
  VersionInfo newer = sealed;
  newer.sealed_at.seconds += 60;
  newer.logical_bytes = 2000;
  newer.unique_bytes = 30;
  VersionInfo open;
  open.state = VersionState::kOpen;
  figures.versions = {sealed, newer, open};
  figures.debt.dead_bytes = 77;
  return figures;
}

TEST(PrometheusText, TellsOfTheNewestSealedVersion) {
  const std::string text = prometheus_text("/backup", {}, {laptop()});
  const std::string labels = "{repository=\"/backup\",series=\"lap\\\"top\\\\\"} ";
  for (const char* line : {"varve_last_sealed_timestamp_seconds{} 1700000060.250",
                           "varve_last_version_logical_bytes{} 2000",
                           "varve_last_version_new_bytes{} 30", "varve_versions{} 2",
                           "varve_series_logical_bytes{} 3000", "varve_series_dead_bytes{} 77"}) {
    std::string wanted = line;
    wanted.replace(wanted.find("{} "), 3, labels);
    EXPECT_NE(text.find("\n" + wanted + "\n"), std::string::npos) << wanted << "\n" << text;
  }
}

TEST(PrometheusText, TellsOfARefusedStore) {
  auto figures = laptop();
  const std::string gauge = "\nvarve_store_refused_timestamp_seconds{";
  EXPECT_EQ(prometheus_text("/backup", {}, {figures}).find(gauge), std::string::npos);
  figures.refused = RefusedStore{RefusalReason::kShrunk, {1700000100, 0}};
  const std::string text = prometheus_text("/backup", {}, {figures});
  EXPECT_NE(text.find(gauge + "repository=\"/backup\",series=\"lap\\\"top\\\\\",reason=\"shrunk\"} "
                              "1700000100\n"),
            std::string::npos)
      << text;
}

TEST(PrometheusText, TellsOfTheDiskAndOfChecks) {
  RepositoryFigures figures;
  figures.space = {.block_bytes = 4096, .blocks = 10, .blocks_available = 3};
  figures.checks = {{CheckDepth::kStructure, 1700000000, 0}, {CheckDepth::kChunks, 1600000000, 2}};
  const std::string text = prometheus_text("/backup", figures, {});
  for (const char* line :
       {"varve_repository_free_bytes{repository=\"/backup\"} 12288",
        "varve_repository_disk_bytes{repository=\"/backup\"} 40960",
        "varve_check_ended_timestamp_seconds{repository=\"/backup\",depth=\"chunks\"} 1600000000",
        "varve_check_damages{repository=\"/backup\",depth=\"structure\"} 0",
        "varve_check_damages{repository=\"/backup\",depth=\"chunks\"} 2"}) {
    EXPECT_NE(text.find("\n" + std::string(line) + "\n"), std::string::npos) << line << "\n"
                                                                             << text;
  }
}

TEST(PrometheusText, NamesEachGaugeOnceAboveItsValues) {
  SeriesFigures empty;
  empty.series.name = "new";
  const std::string text = prometheus_text("/backup", {}, {laptop(), laptop(), empty});
  EXPECT_EQ(text.find("\"new\""), std::string::npos) << "it has no sealed version";
  std::istringstream lines(text);
  std::set<std::string> typed;
  std::string present;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      present = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(typed.insert(present).second) << line;
    } else if (!line.starts_with('#')) {
      EXPECT_EQ(line.substr(0, line.find('{')), present);
    }
  }
  EXPECT_GT(typed.size(), 10U);
}

}  // namespace
}  // namespace varve::cli

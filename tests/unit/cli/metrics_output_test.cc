// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_output.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <sstream>
#include <string>

#include "base/metrics.h"

namespace varve::cli {
namespace {

using std::chrono::nanoseconds;

std::vector<MetricSample> samples() {
  base::Metrics metrics;
  metrics.counter("varve_a_bytes_total", "Bytes in C:\\.").add(1536);
  metrics.counter("varve_b_seconds_total", "Busy time.").add(nanoseconds(1'500'000'000));
  metrics.gauge("varve_c", "Things.").add(7);
  auto& read = metrics.histogram("varve_d_seconds", "Times.", {{"operation", "read \"x\" \\"}});
  for (int i = 0; i < 98; ++i) read.record(nanoseconds(3000));
  read.record(std::chrono::milliseconds(5));
  read.record(std::chrono::minutes(1));
  static_cast<void>(metrics.histogram("varve_d_seconds", "Times.", {{"operation", "write"}}));
  return metrics.sample();
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(PrometheusMetrics, HaveTheTextFormatOfEachKind) {
  const std::string text = prometheus_metrics("/b\"r", samples());
  for (const char* line :
       {"# HELP varve_a_bytes_total Bytes in C:\\\\.", "# TYPE varve_a_bytes_total counter",
        "varve_a_bytes_total{repository=\"/b\\\"r\"} 1536",
        "varve_b_seconds_total{repository=\"/b\\\"r\"} 1.5", "# TYPE varve_c gauge",
        "varve_c{repository=\"/b\\\"r\"} 7", "# TYPE varve_d_seconds histogram"}) {
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  }
  const std::string labels = R"(repository="/b\"r",operation="read \"x\" \\")";
  for (const char* line : {R"(_bucket{L,le="0.000001"} 0)", R"(_bucket{L,le="0.000002"} 0)",
                           R"(_bucket{L,le="0.000004"} 98)", R"(_bucket{L,le="0.008192"} 99)",
                           R"(_bucket{L,le="8.388608"} 99)", R"(_bucket{L,le="+Inf"} 100)",
                           R"(_sum{L} 60.005294)", R"(_count{L} 100)"}) {
    std::string wanted = std::string("varve_d_seconds") + line;
    wanted.replace(wanted.find('L'), 1, labels);
    EXPECT_TRUE(has_line(text, wanted)) << wanted << "\n" << text;
  }
}

TEST(PrometheusMetrics, NameEachFamilyOnceAboveItsValues) {
  std::istringstream lines(prometheus_metrics("/backup", samples()));
  std::set<std::string> typed;
  std::string present;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      present = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(typed.insert(present).second) << line;
    } else if (!line.starts_with('#')) {
      EXPECT_TRUE(line.starts_with(present)) << line;
    }
  }
  EXPECT_EQ(typed.size(), 4U);
}

TEST(MetricsTable, LeavesOutOperationsThatNeverHappened) {
  const std::string text = metrics_table(samples(), false);
  EXPECT_NE(text.find("varve_a_bytes_total    1.5 KiB  Bytes in"), std::string::npos) << text;
  EXPECT_NE(text.find("varve_b_seconds_total    1.5 s  Busy"), std::string::npos) << text;
  EXPECT_NE(text.find("  100  600.1 ms  4 us  8.2 ms\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("write"), std::string::npos) << text;
  EXPECT_NE(metrics_table(samples(), true).find(" 1536 "), std::string::npos);
}

TEST(MetricJson, HasDurationsInSeconds) {
  const auto all = samples();
  EXPECT_EQ(metric_json(all[0]).find("value")->count(), 1536U);
  EXPECT_EQ(metric_json(all[1]).find("value")->dump(), "1.5");
  const auto histogram = metric_json(all[3]);
  EXPECT_EQ(histogram.find("count")->count(), 100U);
  EXPECT_EQ(histogram.find("sum")->dump(), "60.005294");
  EXPECT_EQ(histogram.find("buckets")->elements()->size(), kMetricBounds);
  EXPECT_EQ(*histogram.find("labels")->find("operation")->text(), "read \"x\" \\");
}

}  // namespace
}  // namespace varve::cli

// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace varve::base {
namespace {

using std::chrono::nanoseconds;

/// Returns the number of the bucket that counts the duration.
std::size_t bucket_of(nanoseconds duration) {
  Histogram histogram;
  histogram.record(duration);
  const auto counts = histogram.counts();
  EXPECT_EQ(std::ranges::count(counts, 1U), 1);
  return static_cast<std::size_t>(std::ranges::find(counts, 1U) - counts.begin());
}

TEST(Metrics, ConcurrentCountsAreAllThere) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kTimes = 20000;
  Metrics metrics;
  Counter& counter = metrics.counter("varve_test_things_total", "Things.");
  Gauge& gauge = metrics.gauge("varve_test_bytes", "Bytes.");
  Histogram& histogram = metrics.histogram("varve_test_seconds", "Times.");
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kTimes; ++i) {
        counter.add(2);
        gauge.add(3);
        gauge.remove(2);
        histogram.record(nanoseconds(1500));
        if (i % 1000 == 0) {
          EXPECT_EQ(metrics.sample().size(), 3U);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 2 * kThreads * kTimes);
  EXPECT_EQ(gauge.value(), kThreads * kTimes);
  EXPECT_EQ(histogram.counts()[1], kThreads * kTimes);
  EXPECT_EQ(histogram.sum(), 1500 * kThreads * kTimes);
}

TEST(Metrics, ABucketContainsItsBound) {
  EXPECT_EQ(metric_bound(0), 1000U);
  EXPECT_EQ(bucket_of(nanoseconds(-5)), 0U);
  EXPECT_EQ(bucket_of(nanoseconds(0)), 0U);
  EXPECT_EQ(bucket_of(nanoseconds(1)), 0U);
  for (std::size_t i = 0; i < kMetricBounds; ++i) {
    const auto bound = static_cast<std::int64_t>(metric_bound(i));
    EXPECT_EQ(bucket_of(nanoseconds(bound - 1)), i);
    EXPECT_EQ(bucket_of(nanoseconds(bound)), i);
    EXPECT_EQ(bucket_of(nanoseconds(bound + 1)), i + 1);
  }
  EXPECT_EQ(bucket_of(std::chrono::hours(24)), kMetricBounds);
}

TEST(Metrics, SamplesAreInAFixedOrderAndCumulative) {
  Metrics metrics;
  Histogram& read = metrics.histogram("varve_b_seconds", "Times.", {{"operation", "write"}});
  Histogram& write = metrics.histogram("varve_b_seconds", "Times.", {{"operation", "read"}});
  metrics.counter("varve_c_busy_seconds_total", "Busy.").add(nanoseconds(7));
  metrics.counter("varve_a_bytes_total", "Bytes.").add(5);
  metrics.gauge("varve_d_things", "Things.").add(9);
  read.record(nanoseconds(1000));
  read.record(nanoseconds(1001));
  read.record(std::chrono::minutes(1));
  write.record(nanoseconds(1));
  const auto samples = metrics.sample();
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_EQ(samples[0].name, "varve_a_bytes_total");
  EXPECT_EQ(samples[0].unit, MetricUnit::kBytes);
  EXPECT_EQ(samples[0].value, 5U);
  EXPECT_EQ(samples[1].labels, (Metrics::Labels{{"operation", "write"}}));
  EXPECT_EQ(samples[1].kind, MetricKind::kHistogram);
  EXPECT_EQ(samples[1].value, 60'000'002'001U);
  ASSERT_EQ(samples[1].buckets.size(), kMetricBounds + 1);
  EXPECT_EQ(samples[1].buckets[0], 1U);
  EXPECT_EQ(samples[1].buckets[1], 2U);
  EXPECT_EQ(samples[1].buckets[kMetricBounds - 1], 2U);
  EXPECT_EQ(samples[1].buckets[kMetricBounds], 3U);
  EXPECT_EQ(samples[2].labels, (Metrics::Labels{{"operation", "read"}}));
  EXPECT_EQ(samples[3].unit, MetricUnit::kSeconds);
  EXPECT_EQ(samples[3].value, 7U);
  EXPECT_EQ(samples[4].kind, MetricKind::kGauge);
  EXPECT_EQ(samples[4].unit, MetricUnit::kNone);
  EXPECT_TRUE(std::ranges::all_of(samples, is_well_formed));
}

TEST(Metrics, ASampleThatBreaksARuleIsNotWellFormed) {
  Metrics metrics;
  static_cast<void>(metrics.histogram("varve_a_seconds", "Times.", {{"operation", "read"}}));
  const MetricSample good = metrics.sample().front();
  ASSERT_TRUE(is_well_formed(good));
  const auto refused = [&](auto change) {
    MetricSample sample = good;
    change(sample);
    return !is_well_formed(sample);
  };
  EXPECT_TRUE(refused([](MetricSample& s) { s.name = "varve_a_bytes"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.name = "varve_a{_seconds"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.name = "other_a_seconds"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.name = std::string(60, 'a') + "_seconds"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.help.clear(); }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.help = "a\nb"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.help = std::string(121, 'a'); }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.kind = MetricKind::kGauge; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.kind = MetricKind::kCounter; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.unit = MetricUnit::kNone; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.labels[0].name = "a b"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.labels[0].name = "le"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.labels[0].name = "repository"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.labels[0].value = "\x1b[2J"; }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.labels.push_back(s.labels[0]); }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.labels.resize(9, {"a", "b"}); }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.buckets.pop_back(); }));
  EXPECT_TRUE(refused([](MetricSample& s) { s.buckets[3] = 1; }));
  MetricSample gauge = good;
  gauge.kind = MetricKind::kGauge;
  gauge.unit = MetricUnit::kNone;
  gauge.buckets.clear();
  gauge.name = "varve_a_seconds_now";
  EXPECT_TRUE(is_well_formed(gauge));
  gauge.name = "varve_a_seconds_count";
  EXPECT_FALSE(is_well_formed(gauge)) << "a histogram has a line of this name";
}

TEST(MetricsDeathTest, AMetricIsRegisteredOnceAndByTheRules) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Metrics metrics;
  static_cast<void>(metrics.counter("varve_a_total", "A."));
  EXPECT_DEATH(static_cast<void>(metrics.counter("varve_a_total", "A.")), "labels");
  EXPECT_DEATH(static_cast<void>(metrics.counter("varve_a", "A.")), "suffix");
  EXPECT_DEATH(static_cast<void>(metrics.gauge("varve_A", "A.")), "is_metric_name");
}

}  // namespace
}  // namespace varve::base
